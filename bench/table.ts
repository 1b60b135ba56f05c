/** Measurements as rows, and rows as the table of bench/README.md. */

/** What was measured, what came out, and that as a ratio to something a reader can judge it by. */
export type Row = readonly [what: string, value: string, ratio: string]

export function toMarkdown(rows: readonly Row[]): string {
  return ['| | measured | ratio |', '|---|---|---|', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n')
}

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >>> 1]!
