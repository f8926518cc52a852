// Light or dark: the reader's choice, else the system's. Colours of the page are CSS; what is drawn is repainted here.
const falloffTheme = (() => {
  const chosen = () => { try { return localStorage.getItem("falloff-theme") } catch (_) { return null } }
  const system = matchMedia("(prefers-color-scheme: dark)")
  const current = () => chosen() || (system.matches ? "dark" : "light")
  const ofPage = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

  // The server need not know how a reader likes it.
  const put = (model, values) => model.setv(values, {sync: false})

  function repaint(model, paint) {
    const {ink, quiet, line, grid, paper} = paint
    switch (model.type) {
      case "Figure": case "Plot":
        if (matchMedia("(pointer: coarse)").matches) put(model.toolbar, {active_drag: null})  // a finger scrolls the page
        break
      case "LinearAxis": case "LogAxis": case "CategoricalAxis":
        put(model, {axis_label_text_color: ink, major_label_text_color: quiet, axis_line_color: line, major_tick_line_color: line,
                    minor_tick_line_color: null, axis_label_text_font_style: "normal", axis_label_text_font_size: "14px",
                    major_label_text_font_size: "13px"}); break
      case "Grid": put(model, {grid_line_color: grid}); break
      case "Legend": put(model, {background_fill_color: paper, background_fill_alpha: 0.8, label_text_color: ink, border_line_color: null}); break
      case "Label": case "Title": put(model, {text_color: quiet}); break
      case "Span": if (model.name !== "kept") put(model, {line_color: quiet}); break
      case "GlyphRenderer": {
        const field = paint.dark ? "dark" : "color", other = paint.dark ? "color" : "dark"
        for (const glyph of [model.glyph, model.selection_glyph, model.nonselection_glyph, model.hover_glyph, model.muted_glyph]) {
          if (glyph == null || typeof glyph === "string") continue
          for (const name of ["fill_color", "line_color"]) {
            const value = glyph[name]
            if (value && value.field === other) put(glyph, {[name]: {field}})
            else if (model.tags.length === 2 && glyph[name] !== undefined) put(glyph, {[name]: model.tags[paint.dark ? 1 : 0]})
          }
          if (model.name === "hollow") put(glyph, {fill_color: paper})
        }
      }
    }
  }

  let painted = 0
  const models = (doc) => doc.all_models ?? new Set(doc._all_models.values())

  // What is added later, such as the page of what-if, is painted too.
  function watch(doc) {
    let waiting = false
    doc.on_change(() => {
      if (waiting || models(doc).size === painted) return
      waiting = true
      setTimeout(() => { waiting = false; paintDocuments() }, 0)
    })
  }

  function paintDocuments() {
    const dark = current() === "dark"
    const paint = {dark, ink: ofPage("--ink"), quiet: ofPage("--quiet"), line: ofPage("--line"), grid: ofPage("--grid"), paper: ofPage("--paper")}
    if (!window.Bokeh) return
    for (const doc of window.Bokeh.documents)
      for (const model of models(doc)) repaint(model, paint)
    painted = [...window.Bokeh.documents].reduce((sum, doc) => sum + models(doc).size, 0)
  }

  function ready() {
    apply()
    for (const doc of window.Bokeh.documents) watch(doc)
  }

  function apply() {
    document.documentElement.dataset.theme = current()
    paintDocuments()
    document.documentElement.dataset.painted = ""
  }

  document.documentElement.dataset.theme = current()
  system.addEventListener("change", apply)
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", () => {
      try { localStorage.setItem("falloff-theme", current() === "dark" ? "light" : "dark") } catch (_) { }
      apply()
    })
  })
  return {apply, ready}
})()
