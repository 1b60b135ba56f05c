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
    pattern = forms.length ? new RegExp(forms.map((form) => RegExp.escape(form)).join('|'), 'g') : undefined
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

/** The value as programs write it: plain, in JSON, in URLs, in base64. */
function writtenForms(value: string): Set<string> {
  return new Set([value, ...jsonForms(value), ...urlForms(value), ...base64Forms(value)])
}

/** Some escape all that is not ASCII. */
function jsonForms(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1)
  return [json, json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)]
}

/** Programs differ in which reserved characters they encode, how they write a space, and in the case of the digits. */
function urlForms(value: string): string[] {
  // Half a character cannot be encoded, and encoding it throws.
  const loose = encodeURIComponent(value.toWellFormed())
  const strict = loose.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const forms = [
    loose,
    strict,
    strict.replaceAll('%20', '+'),
    loose.replaceAll('%2F', '/'),
    strict.replaceAll('%2F', '/'),
  ]
  return forms.flatMap((form) => [form, form.replace(/%../g, (code) => code.toLowerCase())])
}

/** At the three alignments that the value can have in a longer text. */
function base64Forms(value: string): string[] {
  const bytes = Buffer.from(value)
  return [0, 1, 2].flatMap((lead) => {
    const encoded = Buffer.concat([Buffer.alloc(lead), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    // The first characters mix in what stands before, the last one what follows: they are not the secret's own.
    const own = encoded.slice(lead === 0 ? 0 : lead + 1, (bytes.length + lead) % 3 === 0 ? undefined : -1)
    return own.length >= MIN_SECRET_LENGTH ? [own, own.replaceAll('+', '-').replaceAll('/', '_')] : []
  })
}
