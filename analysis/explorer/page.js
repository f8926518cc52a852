// What the browser does alone: light or dark, the address, and a word when the server has gone.
const falloff = (() => {
  const PATIENCE = 12_000  // milliseconds that a page may take to connect
  const root = document.documentElement
  const chosen = () => { try { return localStorage.getItem("falloff-theme") } catch (_) { return null } }
  const system = matchMedia("(prefers-color-scheme: dark)")
  const current = () => chosen() || (system.matches ? "dark" : "light")
  const paint = () => { root.dataset.theme = current() }

  paint()
  system.addEventListener("change", paint)
  addEventListener("DOMContentLoaded", () => document.getElementById("theme").addEventListener("click", () => {
    try { localStorage.setItem("falloff-theme", current() === "dark" ? "light" : "dark") } catch (_) { }
    paint()
  }))

  // A page that does not connect, or is cut off, says so.
  const lost = (is) => { document.getElementById("lost")?.toggleAttribute("hidden", !is) }
  const waiting = setTimeout(lost, PATIENCE, true)

  // Each output is scrolled to its result, and the page to the first of these if it was asked for the trial.
  const seek = (place, isAsked) => {
    const lines = [...place?.querySelectorAll("pre mark") ?? []]
    for (const line of lines) {
      const output = line.closest("pre")
      output.scrollTop += line.getBoundingClientRect().top - output.getBoundingClientRect().top - output.clientHeight / 2
    }
    if (isAsked) lines[0]?.scrollIntoView({block: "center"})
  }

  // The view is in the address: what a reader changes is a step that Back undoes.
  function ready() {
    clearTimeout(waiting)
    lost(false)
    const address = Bokeh.documents.at(-1).get_model_by_name("query")
    const transcript = Bokeh.documents.at(-1).get_model_by_name("read trial")
    const read = (isAsked) => requestAnimationFrame(() => seek(Bokeh.index.find_one(transcript)?.shadow_el, isAsked))
    transcript.properties.text.change.connect(() => read(false))
    read(/[?&]trial=/.test(location.search))
    const turn = () => {
      root.toggleAttribute("data-empty", !address.tags.length)
      dispatchEvent(new Event("resize"))
    }
    address.properties.value.change.connect(() => {
      if (address.value !== location.search) history.pushState(null, "", address.value)
      turn()
    })
    address.properties.tags.change.connect(turn)
    addEventListener("popstate", () => { address.value = location.search })
    turn()
  }

  return {ready, lost, seek}
})()
