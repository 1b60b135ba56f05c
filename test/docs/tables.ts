/** Reads the tables of a Markdown page. */

/** The rows whose first cell is code, such as `` `not_found` ``: their cells as text, the first without its backticks. */
export function readTable(markdown: string): string[][] {
  return markdown.split('\n').flatMap((line) => {
    if (!line.startsWith('|')) return []
    // A bar inside a cell is written \|.
    const cells = line.slice(1, line.lastIndexOf('|')).split(/(?<!\\)\|/)
    const [first = '', ...rest] = cells.map((cell) => cell.trim())
    const name = /^`([^`]+)`$/.exec(first)?.[1]
    return name === undefined ? [] : [[name, ...rest]]
  })
}
