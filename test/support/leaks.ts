/** Looks for secrets in whatever has come to light, in every form that the contract names. */

export type Evidence = { readonly where: string; readonly text: string }

export type Leak = { readonly where: string; readonly name: string; readonly as: string; readonly around: string }

/** A piece of a value that is so long is taken for a leak of it. */
const TELLING_LENGTH = 12

/** One of each kind. */
export function findLeaks(secrets: Readonly<Record<string, string>>, evidence: readonly Evidence[]): Leak[] {
  const forms = Object.entries(secrets).flatMap(([name, value]) =>
    formsOf(value).map(({ as, form }) => ({ name, as, form })),
  )
  // The forms are grouped by length, so that each place of a text is looked up once, and not each of a thousand forms
  // in all of it.
  const tables = [...Map.groupBy(forms, ({ form }) => form.length)].map(
    ([length, some]) => [length, new Map(some.map((one) => [one.form, one]))] as const,
  )
  // Much of it comes to light more than once.
  const different = new Map(evidence.map((one) => [one.text, one])).values()
  const leaks = different.toArray().flatMap(({ where, text }) =>
    tables.flatMap(([length, table]) => {
      const found: Leak[] = []
      for (let at = 0; at + length <= text.length; at++) {
        const form = table.get(text.slice(at, at + length))
        if (!form) continue
        const { name, as } = form
        found.push({ where, name, as, around: text.slice(Math.max(0, at - 60), at + length + 40) })
      }
      return found
    }),
  )
  return [...new Map(leaks.map((leak) => [`${leak.where} ${leak.name}`, leak])).values()].slice(0, 8)
}

function formsOf(value: string): { as: string; form: string }[] {
  const lines = value.split('\n').filter((line) => line.length >= TELLING_LENGTH)
  const json = JSON.stringify(value).slice(1, -1)
  const url = encodeURIComponent(value.toWellFormed())
  const base64 = ['', 'x', 'xy'].flatMap((lead) =>
    (['base64', 'base64url'] as const).map((alphabet) =>
      Buffer.from(lead + value)
        .toString(alphabet)
        .replace(/=+$/, '')
        .slice(lead ? 4 : 0, -2),
    ),
  )
  const whole = {
    plain: [value, ...lines],
    json: [json, JSON.stringify(json).slice(1, -1)],
    url: [url, url.replaceAll(/%../g, (code) => code.toLowerCase())],
    base64,
  }
  const forms = Object.entries(whole).flatMap(([as, all]) =>
    all.flatMap((form) => piecesOf(form).map((piece) => ({ as, form: piece }))),
  )
  return [...new Map(forms.map((form) => [form.form, form])).values()]
}

/** Every piece of telling length, so that a half is found too. */
function piecesOf(form: string): string[] {
  return Array.from({ length: Math.max(1, form.length - TELLING_LENGTH + 1) }, (_, at) =>
    form.slice(at, at + TELLING_LENGTH),
  )
}
