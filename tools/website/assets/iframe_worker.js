// Pages that are opened as files may not start workers. The search asks for one by `new Worker(url)`: here it gets a
// hidden frame that runs the same script and speaks the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.document.open()
      inside.document.write("<!doctype html><body></body>")
      inside.document.close()
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      const script = inside.document.createElement("script")
      script.src = url
      script.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.deliver(data))
      }
      inside.document.body.appendChild(script)
    }
    deliver(data) {
      const inside = this.frame.contentWindow
      const event = new inside.MessageEvent("message", { data })
      inside.dispatchEvent(event)
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.deliver(data)
    }
    terminate() {
      this.frame.remove()
    }
  }
}
