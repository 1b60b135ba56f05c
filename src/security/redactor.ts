/** The one place that takes secret values out of text: each becomes `<secret:NAME>`, however it is written. */

/** Shorter values would hit innocent text. */
const MIN_SECRET_LENGTH = 8

export interface Redactor {
  /** Adds or replaces a value; values under the minimal length are not looked for. */
  readonly set: (name: string, value: string) => void
  readonly delete: (name: string) => void
  readonly redact: (text: string) => string
}

export function createRedactor(): Redactor {
  const values = new Map<string, string>()
  let pattern: RegExp | undefined
  const names = new Map<string, string>()

  const rebuild = () => {
    names.clear()
    for (const [name, value] of values) for (const form of writtenForms(value)) names.set(form, name)
    // Longest first: where one secret is the beginning of another, the longer one is meant.
    const forms = [...names.keys()].sort((a, b) => b.length - a.length)
    pattern = forms.length ? new RegExp(forms.map(RegExp.escape).join('|'), 'g') : undefined
  }

  return {
    set(name, value) {
      if (value.length < MIN_SECRET_LENGTH) return
      values.set(name, value)
      rebuild()
    },
    delete(name) {
      if (values.delete(name)) rebuild()
    },
    redact: (text) => (pattern ? text.replace(pattern, (form) => `<secret:${names.get(form)}>`) : text),
  }
}

/** The value as it is, inside a JSON string, URL-encoded, and base64 at the three alignments it can have in a longer text. */
function writtenForms(value: string): Set<string> {
  const forms = new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)])
  const bytes = Buffer.from(value)
  for (const lead of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(lead), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    // The first characters mix in what stands before, the last one what follows: they are not the secret's own.
    const own = encoded.slice(lead === 0 ? 0 : lead + 1, (bytes.length + lead) % 3 === 0 ? undefined : -1)
    if (own.length >= MIN_SECRET_LENGTH) forms.add(own).add(own.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}
