from tools.website.build import main

main()
