/** Shows a Jupyter notebook as text: its cells with their outputs. */
import { z } from 'zod'
import { parseUntrustedJson } from '../../lib/json/untrusted-json.ts'

/** One string, or its lines. */
const NotebookText = z.union([z.string(), z.array(z.string()).transform((lines) => lines.join(''))])

const CellOutput = z.looseObject({
  output_type: z.string(),
  /** The text of a `stream`. */
  text: NotebookText.optional(),
  /** The data of `execute_result` and `display_data`, by media type. */
  data: z.record(z.string(), z.unknown()).optional(),
  /** The name and the value of an `error`. */
  ename: z.string().optional(),
  evalue: z.string().optional(),
})
type CellOutput = z.infer<typeof CellOutput>

const Notebook = z.looseObject({
  nbformat: z.int(),
  cells: z.array(
    z.looseObject({
      id: z.string().optional(),
      cell_type: z.string(),
      source: NotebookText,
      outputs: z.array(CellOutput).optional(),
    }),
  ),
})

/** Returns undefined if the text is not a notebook, whatever the name of its file. */
export function notebookText(text: string): string | undefined {
  const parseResult = Notebook.safeParse(readJson(text))
  if (!parseResult.success) return undefined
  const cells = parseResult.data.cells.map(({ id, cell_type, source, outputs = [] }, at) =>
    [`[cell ${at + 1}: ${cell_type}${id === undefined ? '' : `, id ${id}`}]`, source, ...outputs.map(outputText)].join(
      '\n',
    ),
  )
  return cells.join('\n\n')
}

function outputText({ output_type, text, data, ename, evalue }: CellOutput): string {
  if (output_type === 'error') return `[error]\n${ename ?? ''}: ${evalue ?? ''}`
  if (text !== undefined) return `[output]\n${text}`
  const plain = NotebookText.safeParse(data?.['text/plain'])
  const others = Object.keys(data ?? {}).filter((type) => type !== 'text/plain')
  const note = others.length > 0 ? `, also as ${others.join(', ')}` : ''
  return plain.success ? `[output${note}]\n${plain.data}` : `[output not shown${note}]`
}

function readJson(text: string): unknown {
  try {
    return parseUntrustedJson(text)
  } catch {
    return undefined // it is shown as plain text
  }
}
