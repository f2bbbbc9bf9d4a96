// A click on a picture, or its button, shows it over the whole window; + and - change its size, Escape closes it.
const steps = [1, 1.5, 2, 3, 4]

function button(text, label, act) {
  const made = document.createElement("button")
  made.type = "button"
  made.textContent = text
  made.ariaLabel = label
  made.title = label
  made.onclick = act
  return made
}

function enlarge(picture) {
  const dialog = document.createElement("dialog")
  const svg = picture.querySelector("svg").cloneNode(true)
  const own = svg.viewBox.baseVal
  const sheet = document.createElement("div")
  const bar = document.createElement("div")
  let step = 0
  const fit = Math.max(0.2, Math.min((innerWidth - 48) / own.width, (innerHeight - 96) / own.height, 2.5))
  const resize = by => {
    step = Math.min(Math.max(step + by, 0), steps.length - 1)
    svg.setAttribute("width", own.width * fit * steps[step])
    svg.setAttribute("height", own.height * fit * steps[step])
  }
  dialog.className = "enlarged md-typeset"
  dialog.ariaLabel = svg.getAttribute("aria-label") || "picture"
  sheet.className = "picture"
  sheet.tabIndex = 0
  bar.append(
    button("−", "smaller", () => resize(-1)), button("+", "larger", () => resize(1)),
    button("×", "close", () => dialog.close()),
  )
  sheet.append(svg)
  dialog.append(bar, sheet)
  dialog.onkeydown = event => {
    if (event.key === "+" || event.key === "=") resize(1)
    if (event.key === "-") resize(-1)
  }
  dialog.onclick = event => { if (event.target === dialog) dialog.close() }
  svg.onclick = () => (step === steps.length - 1 ? resize(-step) : resize(1))
  dialog.onclose = () => dialog.remove()
  document.body.append(dialog)
  resize(0)
  dialog.showModal()
}

for (const picture of document.querySelectorAll(".md-typeset .picture")) {
  const svg = picture.querySelector("svg")
  if (!svg) continue
  svg.addEventListener("click", () => enlarge(picture))
  picture.append(button("enlarge", `enlarge: ${svg.getAttribute("aria-label") || "picture"}`, () => enlarge(picture)))
}
