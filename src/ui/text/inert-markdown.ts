/**
 * Markdown that was written by somebody who may be hostile, for viewers of which nothing is known: it keeps its format, but
 * no image is loaded, nothing is HTML, and links lead to pages and mail only. Code keeps its characters where all viewers see
 * code. Pure.
 */

/** Viewers colour the code of these languages, and draw that of some others. */
const COLOURED =
  /^(?:bash|c|cpp|cs|csharp|css|diff|dockerfile|go|html|ini|java|javascript|js|json|jsx|makefile|php|py|python|ruby|rust|sh|sql|text|toml|ts|tsx|typescript|xml|yaml|yml)$/

/** A fence at the beginning of a line ends all lists and quotations. */
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})[ \t]*([^ \t]*)/

export function inertMarkdown(text: string): string {
  const out: string[] = []
  const lines = text.split(/\r\n?|\n/)
  /** False after a fence whose end depends on the viewer: nothing is kept as code from then on. */
  let hasFences = true
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const [, fence, language = ''] = (hasFences && FENCE.exec(line)) || []
    if (fence === undefined) {
      hasFences &&= !/`{3}|~{3}/.test(line)
      out.push(inertLine(line))
    } else {
      const end = endOfFence(lines, at + 1, fence)
      // Some viewers take a fence right after `[a]:` for the target of a link.
      out.push('', fenceText(lines.slice(at + 1, end).join('\n'), COLOURED.test(language) ? language : ''))
      at = end
    }
  }
  return out.join('\n')
}

const TAGS = /<(?=[a-z/!?])/gi
/** What begins the target of a link, unless that is a page or mail: a target without a scheme may be a file of the reader. */
const TARGETS = /(?<=\])\((?!https?:\/\/|mailto:)/gi
const DANGERS = /<[a-z/!?]|!\[|\]:|\]\((?!https?:\/\/|mailto:)/i
const SPANS = /(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)/g

/**
 * An entity is text for each viewer, and no backslash is, wherever it is; an image becomes a link. The
 * title of the target of a link, after `[a]:`, may have whole lines. In code it would be shown as it is, so
 * that code with a tag becomes text: viewers do not agree on which backticks belong together.
 */
const inertLine = (line: string): string =>
  line
    .replaceAll(SPANS, (span: string, _, code: string) => (DANGERS.test(code) ? code : span))
    .replaceAll(TAGS, '&lt;')
    .replaceAll('![', '&#33;[')
    .replaceAll(']:', ']&#58;')
    .replaceAll(TARGETS, '&#40;')
    .replace(BACKTICKS, nameLanguage)
    .replace(TILDES, nameLanguage)

/** Viewers find a fence also after the marks of lists and quotations, and do not agree on these. */
const BACKTICKS = /^([^`]*`{3,})([^`]+)$/
const TILDES = /^([^`~]*~{3,})([^~].*)$/

/** Code of a language that a viewer may draw becomes plain text. */
const nameLanguage = (line: string, fence: string, info: string): string =>
  /^\s*$/.test(info) || COLOURED.test(info.trim()) ? line : `${fence}text ${info}`

const ENDING = /^ {0,3}(`+|~+)[ \t]*$/

/** The place of the line that ends it, or of the end of the text. */
function endOfFence(lines: readonly string[], start: number, fence: string): number {
  const end = lines.findIndex((line, at) => at >= start && ENDING.exec(line)?.[1]?.startsWith(fence))
  return end === -1 ? lines.length : end
}

/** A fence that is longer than any in the text. */
export function fenceText(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
