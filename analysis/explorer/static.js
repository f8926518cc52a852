// The static page: one experiment at a time is drawn from the data in the page itself.
const pages = JSON.parse(document.getElementById("pages").textContent)
const at = (id) => document.getElementById(id)
const hint = at("trial").firstElementChild
let drawn = null

// Curves that are switched off are taken out of every layer's data; the page keeps all of it.
function switched(doc, hidden) {
  for (const [name, all] of Object.entries(doc.whole)) {
    const kept = [...all.series.keys()].filter((row) => !hidden.has(all.series[row]))
    const data = {}
    for (const column of Object.keys(all)) data[column] = kept.map((row) => all[column][row])
    doc.get_model_by_name(name).data = data
  }
}

function legend(page, doc) {
  const hidden = new Set()
  at("legend").replaceChildren(...page.series.map((one) => {
    const button = document.createElement("button")
    button.type = "button"
    button.setAttribute("aria-pressed", "true")
    button.innerHTML = `<span class="mark light">${one.light}</span><span class="mark night">${one.dark}</span>`
    button.append(one.name)
    button.addEventListener("click", () => {
      hidden.has(one.name) ? hidden.delete(one.name) : hidden.add(one.name)
      button.setAttribute("aria-pressed", String(!hidden.has(one.name)))
      switched(doc, hidden)
    })
    return button
  }))
}

function tell(page, source) {
  const [row] = source.selected.indices
  if (row === undefined) return
  const trial = source.data.trial[row], said = page.trials[`${source.data.source[row]} ${trial}`]
  const head = document.createElement("h3"), where = document.createElement("p"), ran = document.createElement("pre"), out = document.createElement("pre")
  head.textContent = trial
  where.textContent = [source.data.value[row], `block ${source.data.block[row]}`, source.data.settings[row], source.data.note[row]].filter(Boolean).join(", ")
  ran.textContent = said ? said[0] : "no transcript"
  out.textContent = said ? said[1] : ""
  at("trial").replaceChildren(head, where, ran, out)
}

async function show(number) {
  const page = pages[number]
  at("question").innerHTML = page.question
  at("verdict").innerHTML = page.verdict
  at("table").innerHTML = page.table
  at("plot").replaceChildren()
  at("trial").replaceChildren(hint.cloneNode(true))
  drawn?.clear?.()
  const views = await Bokeh.embed.embed_item(page.plot, at("plot"))
  const doc = drawn = views.roots[0].model.document
  doc.whole = {}
  for (const name of page.layers) {
    const {data} = doc.get_model_by_name(name)
    doc.whole[name] = Object.fromEntries(Object.entries(data).map(([column, values]) => [column, [...values]]))
  }
  const trials = doc.get_model_by_name("points")
  trials.selected.properties.indices.change.connect(() => tell(page, trials))
  legend(page, doc)
  falloffTheme.apply()
}

at("experiment").addEventListener("change", (event) => show(Number(event.target.value)))
show(0)
