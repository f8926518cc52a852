// What the browser does alone: light or dark, the address, the figure as a file, and a word when the server has gone.
const falloff = (() => {
  const root = document.documentElement
  const chosen = () => { try { return localStorage.getItem("falloff-theme") } catch (_) { return null } }
  const system = matchMedia("(prefers-color-scheme: dark)")
  const current = () => chosen() || (system.matches ? "dark" : "light")
  const paint = () => { root.dataset.theme = current() }
  const model = (name) => Bokeh.documents.at(-1).get_model_by_name(name)

  paint()
  system.addEventListener("change", paint)
  addEventListener("DOMContentLoaded", () => document.getElementById("theme").addEventListener("click", () => {
    try { localStorage.setItem("falloff-theme", current() === "dark" ? "light" : "dark") } catch (_) { }
    paint()
  }))

  // The view is in the address: what a reader changes is a step that Back undoes.
  function ready() {
    const address = model("said")
    const turn = () => {
      root.dataset.page = new URLSearchParams(address.value).has("page") ? "what-if" : "explore"
      dispatchEvent(new Event("resize"))
    }
    address.properties.value.change.connect(() => {
      if (address.value !== location.search) history.pushState(null, "", address.value)
      turn()
    })
    addEventListener("popstate", () => { address.value = location.search })
    turn()
  }

  async function save(name) {
    const drawing = Bokeh.index.find_one(model("view")).export("svg")
    const link = document.createElement("a")
    link.href = URL.createObjectURL(await drawing.to_blob())
    link.download = `${name}.svg`
    link.click()
  }

  return {ready, save, lost: () => { document.getElementById("lost").hidden = false }}
})()
