/** Completion in the prompt: slash commands at its beginning, and files of the conversation after `@`. */
import type { AutocompleteItem, AutocompleteProvider, AutocompleteSuggestions } from '@earendil-works/pi-tui'
import { cleanLine, revealText } from '../state/clean-text.ts'

export type CompletedCommand = {
  readonly name: string
  readonly description: string
  readonly values?: readonly string[]
}

export type CompletionSource = {
  readonly commands: () => readonly CompletedCommand[]
  /** Paths of the workdir that fit; directories end in `/`. */
  readonly findFiles: (part: string, signal: AbortSignal) => Promise<readonly string[]>
  readonly isOff: () => boolean
}

const FILE_WORD = /(?:^|\s)(@"?[^\s"]*)$/

export class Completion implements AutocompleteProvider {
  readonly #source: CompletionSource
  #searching = new AbortController()

  constructor(source: CompletionSource) {
    this.#source = source
  }

  async getSuggestions(
    lines: string[],
    line: number,
    column: number,
    { signal }: { signal: AbortSignal },
  ): Promise<AutocompleteSuggestions | null> {
    if (this.#source.isOff()) return null
    const before = (lines[line] ?? '').slice(0, column)
    if (line === 0 && before.startsWith('/')) return suggest(before, this.#commandsFor(before))
    const word = FILE_WORD.exec(before)?.[1]
    if (word === undefined) return null
    const part = word.replace(/^@"?/, '')
    this.#searching = new AbortController()
    const endSignal = AbortSignal.any([signal, this.#searching.signal])
    const paths = await this.#source.findFiles(part, endSignal).catch(() => [])
    return suggest(word, paths.filter(isPrintable).map(fileItem))
  }

  /** Ends a search when the text has changed. The prompt itself calls for that only while a word is completed. */
  cancel(): void {
    this.#searching.abort()
  }

  /** `prefix` is the word for which the list was made. Keys that came before the next list have made it longer. */
  applyCompletion(lines: string[], line: number, column: number, { value }: AutocompleteItem, prefix: string) {
    const text = lines[line] ?? ''
    const typedText = text.slice(0, column)
    const word = line === 0 && typedText.startsWith('/') ? typedText : (FILE_WORD.exec(typedText)?.[1] ?? '')
    const fits = word === prefix || (word.startsWith(prefix) && value.startsWith(word))
    if (!fits) return { lines, cursorLine: line, cursorCol: column }
    const before = typedText.slice(0, column - word.length) + value
    return { lines: lines.with(line, before + text.slice(column)), cursorLine: line, cursorCol: before.length }
  }

  shouldTriggerFileCompletion(lines: string[], line: number, column: number): boolean {
    return FILE_WORD.test((lines[line] ?? '').slice(0, column))
  }

  #commandsFor(before: string): AutocompleteItem[] {
    const [name = '', ...rest] = before.slice(1).split(' ')
    const entries = this.#source.commands()
    if (rest.length > 0) {
      const values = entries.find((entry) => entry.name === name)?.values ?? []
      const fitting = values.filter((value) => value.startsWith(rest.join(' ')) && value !== rest.join(' '))
      return fitting.map((value) => ({ value: `/${name} ${value}`, label: value }))
    }
    const fits = entries.filter((entry) => entry.name.startsWith(name))
    return fits.map((entry) => ({
      value: `/${entry.name} `,
      label: `/${entry.name}`,
      description: cleanLine(entry.description),
    }))
  }
}

const suggest = (prefix: string, items: AutocompleteItem[]): AutocompleteSuggestions | null =>
  items.length === 0 ? null : { items, prefix }

/** The prompt cannot hold other names. */
const isPrintable = (path: string): boolean => revealText(path) === path && !/["\n]/.test(path)

function fileItem(path: string): AutocompleteItem {
  const quotedPath = path.includes(' ') ? `@"${path}"` : `@${path}`
  return { value: path.endsWith('/') ? quotedPath.replace(/"$/, '') : `${quotedPath} `, label: path }
}
