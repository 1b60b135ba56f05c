/** Finds the secret values in the files in which programs keep their credentials, whatever the form of the file is. */

/** Names whose values are secret end with these words: `_authToken`, `aws_secret_access_key`, `client-key-data`, `<password>`. */
const SECRET_NAME =
  /(?<![A-Za-z0-9])[\w-]{0,64}?(?:pass|passwd|password|passphrase|pwd|secret|token|key|auth|authident|credentials?|cookie|value)(?:[-_]data)?["']?[ \t]{0,8}([=:>])/gi

/** What is in a value is looked at, too: it may have names in it, as `{"token": {"access_token": …}}` has. */
const VALUE = /[ \t]{0,8}("[^"\\\n]{0,8192}(?:\\.[^"\\\n]{0,8192}){0,4096}"|'[^'\n]{0,8192}'|[^\s"'][^\n]{0,8192})/y
/** A value in YAML may be on the next lines. A line with a colon is another setting. */
const VALUE_BELOW =
  /[ \t]{0,8}(?:[|>][-+0-9]{0,3}[ \t]{0,8})?\r?\n((?:[ \t]{1,64}[^\s:=][^\s:]{0,8192}\r?(?:\n|$)){1,512})/y
const VALUE_IN_ELEMENT = /([^<]{1,8192})</y

/** `machine host login name password secret`, in `.netrc`. */
const AFTER_WORD = /(?<![\w-])password[ \t\r\n]{1,8}("[^"\n]*"|[^\s"=:]\S*)/g

/** `host:port:database:user:secret`, in `.pgpass`. */
const LAST_OF_FIVE = /^[^:\s]{1,256}:(?:\d{1,5}|\*):[^:\s]{1,256}:[^:\s]{1,256}:(\S{1,1024})$/gm

/** `https://name:secret@host`; what is alone before the host may be a secret, too. */
const IN_URL = /:\/\/([^\s/:@"']*)(?::([^\s/@"']*))?@/g

const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/g

/** Services begin their tokens with these. They are found everywhere, as in a comment. */
const KNOWN_FORMS =
  /(?<![\w-])(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|dckr_pat_|hf_|sk-|xox[abeprs]-|eyJ)[\w.-]{16,8192}/g

/** A user name in a URL is shorter; tokens are longer. */
const MIN_LONE_TOKEN = 20

/** Values that stand for a variable. */
const VARIABLE = /^\$\{[^}]*\}\??$/

/** How often what is encoded in a value is looked into. */
const MAX_DEPTH = 2

/** A value is found in several spellings, some of them twice. A file of credentials has fewer. */
const SPELLINGS = 8

export type FoundTokens = { readonly values: readonly string[]; readonly areAll: boolean }

/** Returns up to `most` values: each as it is written, and as it is meant if it is encoded. */
export function tokensInText(text: string, most: number): FoundTokens {
  const foundTokens = new Set<string>()
  let remainingSpellings = most * SPELLINGS
  for (const value of valuesIn(text, MAX_DEPTH)) {
    if (value === '') continue
    remainingSpellings -= 1
    if (remainingSpellings < 0) return { values: [...foundTokens], areAll: false }
    if (VARIABLE.test(value) || foundTokens.has(value)) continue
    if (foundTokens.size === most) return { values: [...foundTokens], areAll: false }
    foundTokens.add(value)
  }
  return { values: [...foundTokens], areAll: true }
}

function* valuesIn(text: string, depth: number): Generator<string> {
  for (const { 0: name, 1: sign, index } of text.matchAll(SECRET_NAME)) {
    const at = index + name.length
    yield* spellingsOf(valueAt(text, at, sign === '>' ? VALUE_IN_ELEMENT : VALUE), depth)
    const words = valueAt(text, at, VALUE_BELOW).split(/\s+/)
    yield* words
    yield* meaningsOfBase64(words.join(''), depth)
  }
  for (const form of [AFTER_WORD, LAST_OF_FIVE])
    for (const [, value = ''] of text.matchAll(form)) yield* spellingsOf(value, depth)
  for (const [, user = '', password] of text.matchAll(IN_URL)) {
    if (password !== undefined) yield* meaningsOf(password)
    if (user.length >= MIN_LONE_TOKEN) yield* meaningsOf(user)
  }
  for (const [token] of text.matchAll(KNOWN_FORMS)) yield token
  yield* privateKeysIn(text)
  // The whole of a file such as `.vault-token`.
  const alone = text.trim()
  if (depth === MAX_DEPTH && /^[\w.+-]{8,8192}$/.test(alone)) yield alone
}

function valueAt(text: string, at: number, form: RegExp): string {
  form.lastIndex = at
  return form.exec(text)?.[1]?.trim() ?? ''
}

/** A line may end with a comment or a bracket, and in some files a value has spaces. */
function spellingsOf(writtenText: string, depth: number): string[] {
  if (VARIABLE.test(writtenText.trim())) return []
  const quotedText = /^(["'])(.*)\1$/s.exec(writtenText)?.[2]
  const values =
    quotedText === undefined
      ? [writtenText.trim(), ...[/^[^\s,;#]*/, /^[^\s,;#&)\]}<"']*/].map((end) => end.exec(writtenText)?.[0] ?? '')]
      : [quotedText, ...unescapeText(writtenText).flatMap(withoutFrame)]
  return values.flatMap((value) => [value, ...meaningsOfBase64(value, depth)])
}

/** JSON, YAML and TOML escape in double quotes. */
function unescapeText(writtenText: string): string[] {
  if (!writtenText.startsWith('"') || !writtenText.includes('\\')) return []
  try {
    return [String(JSON.parse(writtenText))]
  } catch {
    return []
  }
}

/** Keys of service accounts are such values. Everyone knows their first and last lines. */
function withoutFrame(value: string): string[] {
  const keys = privateKeysIn(value)
  return keys.length === 0 ? [value] : keys
}

function meaningsOf(part: string): string[] {
  try {
    return [part, decodeURIComponent(part)]
  } catch {
    return [part]
  }
}

/** `_auth` is the base64 of a name and a password, `_password` that of a password, `client-key-data` that of a key. */
function meaningsOfBase64(value: string, depth: number): string[] {
  if (depth === 0 || !/^[A-Za-z0-9+/]{8,}={0,2}$/.test(value)) return []
  const text = Buffer.from(value, 'base64').toString('utf8')
  // Text that was encoded has no other characters.
  if (!/^[\t\n\r\x20-\x7e\u00a0-\ud7ff]+$/.test(text)) return []
  const colon = text.indexOf(':')
  const inside = [...valuesIn(text, depth - 1)]
  if (/[\n\r]/.test(text.trim())) return inside
  return [text.trim(), ...(colon < 0 ? [] : [text.slice(colon + 1).trim()]), ...inside]
}

/** Each line of a key is searched for, too. */
function privateKeysIn(text: string): string[] {
  return [...text.matchAll(PRIVATE_KEY)].flatMap(({ 0: { length }, index }, at, { [at + 1]: next }) => {
    const body = text.slice(index + length, next?.index)
    const end = body.indexOf('-----END')
    return end < 0 ? [] : [body.slice(0, end).trim()]
  })
}
