-- Numbers figures and tables, and turns empty links such as [](#fig:share) into "Figure 2".
-- HTML gets the numbers here; Typst numbers captions itself and only needs its own reference.
-- In HTML code and evidence fold away; in PDF they are left out.

local NAMES = { fig = "Figure", tbl = "Table" }
local counts = { fig = 0, tbl = 0 }
local labels = {}

local function kind(identifier)
  return NAMES[identifier:match("^(%a+):")] and identifier:match("^(%a+):")
end

local function number(element)
  local found = kind(element.identifier)
  if not found then return nil end
  counts[found] = counts[found] + 1
  labels[element.identifier] = NAMES[found] .. "\u{a0}" .. counts[found]
  if FORMAT:match("html") and element.caption.long[1] then
    local caption = element.caption.long[1].content
    caption:insert(1, pandoc.Space())
    caption:insert(1, pandoc.Strong(labels[element.identifier] .. "."))
  end
  return element
end

local function resolve(link)
  local identifier = link.target:match("^#(.+)")
  if #link.content > 0 or not identifier or not kind(identifier) then return nil end
  if not labels[identifier] then error("the text refers to " .. identifier .. ", which is not there") end
  if FORMAT == "typst" then return pandoc.RawInline("typst", "@" .. identifier) end
  link.content = { pandoc.Str(labels[identifier]) }
  return link
end

-- ::: summary, small, long and dense become calls of the template's own functions in Typst; HTML styles the div by its class.
local BOXES = { summary = true, small = true, long = true, dense = true }

-- In PDF figures go where there is room, and tables break. What opens the report stands above two columns, in which figures are as wide as a
-- column and tables as both.
local FLOATING = [==[
#show figure.where(kind: image): set figure(placement: auto)
#show figure.where(kind: table): set block(breakable: true)]==]
local BEGIN_OPENING = [==[
#show figure.where(kind: table): set figure(placement: auto, scope: "parent")
#show figure.where(kind: table): set text(8pt)
#set table(inset: (x: 5pt, y: 2pt))
#set image(width: 54%)
#place(top, scope: "parent", float: true)[
]==]
local END_OPENING = "]\n#set image(width: 100%)"
local FOLDS = { code = "Code", evidence = "Evidence" }
local function box(div)
  local name = div.classes[1]
  if FOLDS[name] then
    if FORMAT == "typst" then return {} end
    local open = '<details class="' .. name .. '"><summary>' .. FOLDS[name] .. "</summary>"
    div.content:insert(1, pandoc.RawBlock("html", open))
    div.content:insert(pandoc.RawBlock("html", "</details>"))
    return div.content
  end
  if name == "beside" then return FORMAT == "typst" and {} or div.content end
  if name == "floating" then return FORMAT == "typst" and pandoc.RawBlock("typst", FLOATING) or {} end
  if name == "opening" then
    if FORMAT ~= "typst" then return nil end
    div.content:insert(1, pandoc.RawBlock("typst", BEGIN_OPENING))
    div.content:insert(pandoc.RawBlock("typst", END_OPENING))
    return div.content
  end
  if FORMAT ~= "typst" or not BOXES[name] then return nil end
  div.content:insert(1, pandoc.RawBlock("typst", "#" .. name .. "["))
  div.content:insert(pandoc.RawBlock("typst", "]"))
  return div.content
end

-- {widths="1 4 2"} shares a table's width among its columns; without it they are as wide as what they hold.
local function share(element)
  local asked = element.attributes.widths
  if not asked then return nil end
  local parts, sum = {}, 0
  for part in asked:gmatch("%S+") do
    table.insert(parts, tonumber(part))
    sum = sum + tonumber(part)
  end
  for number, colspec in ipairs(element.colspecs) do
    colspec[2] = parts[number] / sum
  end
  element.attributes.widths = nil
  return element
end

-- A table wider than a phone scrolls inside its own frame.
local function frame(element)
  if not FORMAT:match("html") then return nil end
  return pandoc.Div({ element }, pandoc.Attr("", { "frame" }))
end

-- Of pictures only the report's own, and of links none that runs or reads a file, whoever wrote the text.
local function own_picture(image)
  if image.src:match("^figures/[%w_]+%.svg$") then return nil end
  return image.caption
end

local function harmless(link)
  local target = link.target
  if target:match("^#") or target:match("^https?://") or target:match("^%w+%.html$")
    or target:match("^%w+%.html#[%w_.%%-]+$") then return nil end
  return link.content
end

-- Quoted letters of analysis/quoting.py, as they were written. In Typst they stand in a string, in which nothing is markup.
local function as_written(text)
  local function letter(stand_in) return string.char(utf8.codepoint(stand_in) - 0xE000) end
  return (text:gsub("\xEE\x80[\xA0-\xBF]", letter):gsub("\xEE\x81[\x80-\xBF]", letter))
end

local function written(element)
  local text = as_written(element.text)
  if text == element.text then return nil end
  if FORMAT == "typst" and element.t == "Str" then
    return pandoc.RawInline("typst", '#"' .. text:gsub('[\\"]', "\\%0") .. '";')
  end
  element.text = text
  return element
end

local function described(image)
  image.attributes.alt = image.attributes.alt and as_written(image.attributes.alt)
  return image
end

-- ::: screen is in HTML alone, and has no number in PDF.
local function on_screen(div)
  if div.classes[1] ~= "screen" then return nil end
  return FORMAT:match("html") and div.content or {}
end

function Pandoc(document)
  document = document:walk({ Image = own_picture, Link = harmless, RawInline = function() return {} end,
    RawBlock = function() return {} end })
  document = document:walk({ Div = on_screen })
  document = document:walk({ traverse = "topdown", Figure = number, Table = number })
  document = document:walk({ Table = share })
  document = document:walk({ Str = written, Code = written, CodeBlock = written, Image = described })
  return document:walk({ Link = resolve, Div = box, Table = frame })
end
