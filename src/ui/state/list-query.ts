/** What somebody types to find conversations: words, and filters such as `label:ci model:gpt-5 user:"ada l"`. Pure. */

export type ListQuery = {
  readonly q?: string
  readonly label?: readonly string[]
  readonly model?: string
  readonly user_id?: string
}

const FILTERS = /(?<=^|\s)(label|model|user):(?:"([^"]*)"|(\S*))/g

export function listQueryOf(text: string): ListQuery {
  const labels: string[] = []
  const one: { model?: string; user_id?: string } = {}
  const rest = text.replaceAll(
    FILTERS,
    (_, name: string, quotedWords: string | undefined, word: string | undefined) => {
      const value = (quotedWords ?? word ?? '').trim()
      if (value === '') return ' '
      if (name === 'label') labels.push(value)
      else one[name === 'user' ? 'user_id' : 'model'] = value
      return ' '
    },
  )
  const q = rest.replaceAll(/\s+/g, ' ').trim()
  return { ...(q && { q }), ...(labels.length > 0 && { label: labels }), ...one }
}

export type FilterName = 'label' | 'model' | 'user'

/** Returns the text with this filter instead of all others of its name, or without one. */
export function withFilter(text: string, name: FilterName, value: string | undefined): string {
  const rest = text.replaceAll(FILTERS, (whole: string, other: string) => (other === name ? '' : whole)).trim()
  return value === undefined ? rest : `${rest} ${filterText(name, value)}`.trim()
}

/** Returns false for a value that has no text, such as one with a space and a quote. */
export function hasFilterText(name: FilterName, value: string): boolean {
  const { label, model, user_id } = listQueryOf(filterText(name, value))
  return [label?.[0], model, user_id].includes(value)
}

export function filterText(name: FilterName, value: string): string {
  return /\s/.test(value) ? `${name}:"${value}"` : `${name}:${value}`
}
