/** examples/clients.md as a program: the code blocks of each section, what the programs print, and the table of results. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PAGE = join(import.meta.dirname, '../../examples/clients.md')
const TABLE = /(<!-- clients -->\n)[^]*?(<!-- \/clients -->)/

/** `generate` and `run` are for bash, `program` is the source text. */
export type Section = { readonly generate: string; readonly program: string; readonly run: string }

/** The three code blocks below a heading. Throws where there are others. */
export function readSection(heading: string): Section {
  const [generate, program, run, ...others] = blocksBelow(heading)
  if (generate === undefined || program === undefined || run === undefined || others.length > 0)
    throw new Error(`examples/clients.md needs three code blocks below "${heading}".`)
  return { generate, program, run }
}

/** The only code block below a heading. Throws where there are others. */
export function readProgram(heading: string): string {
  const [program, ...others] = blocksBelow(heading)
  if (program === undefined || others.length > 0)
    throw new Error(`examples/clients.md needs one code block below "${heading}".`)
  return program
}

/** Returns what every program prints. */
export function readExpectedOutput(): string {
  const [output] = blocksOf(read().split(/^## /m)[0] ?? '')
  if (output === undefined) throw new Error('examples/clients.md does not say what the programs print.')
  return output
}

function blocksBelow(heading: string): string[] {
  const section = read()
    .split(/^## /m)
    .find((text) => text.startsWith(`${heading}\n`))
  return blocksOf(section ?? '')
}

const blocksOf = (text: string) => [...text.matchAll(/^```\w+\n([^]*?)^```$/gm)].map(([, block]) => block!)

const read = () => readFileSync(PAGE, 'utf8')

/** The rows of the table that is on the page. */
export function readRows(): string[] {
  const [table = ''] = TABLE.exec(read()) ?? []
  return table.split('\n').filter((line) => line.startsWith('| ['))
}

export function writeTable(table: string): void {
  writeFileSync(
    PAGE,
    read().replace(TABLE, (_, start: string, end: string) => `${start}${table}\n${end}`),
  )
}
