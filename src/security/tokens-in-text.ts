/** Finds the secret values in the files in which programs keep their credentials, whatever the form of the file is. */

/** The last words of names whose values are secret: `_authToken`, `oauth_token`, `aws_secret_access_key`, `password`. */
const NAMED =
  /(?<![A-Za-z0-9])[\w-]{0,64}?(?:password|passwd|secret|token|key|auth|authident)["']?[ \t]{0,8}[=:][ \t]{0,8}("[^"\\\n]*(?:\\.[^"\\\n]*){0,4096}"|'[^'\n]*'|[^\s"'][^\n]*)/gi

/** `machine host login name password secret`, in `.netrc`. */
const AFTER_WORD = /(?<![\w-])password[ \t\r\n]{1,8}("[^"\n]*"|[^\s"=:]\S*)/g

/** `https://name:secret@host`; what is alone before the host may be a secret, too. */
const IN_URL = /:\/\/([^\s/:@"']*)(?::([^\s/@"']*))?@/g

const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/g

/** A user name in a URL is shorter; tokens are longer. */
const MIN_LONE_TOKEN = 20

/** Values that stand for a variable. */
const VARIABLE = /^\$\{[^}]*\}\??$/

/** Each value as it is written, and as it is meant if it is encoded. */
export function tokensInText(text: string): string[] {
  const named = [...text.matchAll(NAMED), ...text.matchAll(AFTER_WORD)].flatMap(([, value = '']) => spellingsOf(value))
  const inUrls = [...text.matchAll(IN_URL)].flatMap(([, user = '', password]) => [
    ...(password === undefined ? [] : meaningsOf(password)),
    ...(user.length >= MIN_LONE_TOKEN ? meaningsOf(user) : []),
  ])
  const all = [...named, ...inUrls, ...privateKeysIn(text)]
  return [...new Set(all)].filter((value) => value !== '' && !VARIABLE.test(value))
}

/** A line may end with a comment, and in some files a value has spaces. */
function spellingsOf(written: string): string[] {
  const quoted = /^(["'])(.*)\1$/.exec(written)?.[2]
  const values =
    quoted === undefined
      ? [written.trim(), /^[^\s,;#]*/.exec(written)?.[0] ?? '']
      : [quoted, ...unescaped(written).flatMap(withoutFrame)]
  return values.flatMap((value) => [value, ...decoded(value)])
}

/** JSON, YAML and TOML escape in double quotes. */
function unescaped(written: string): string[] {
  if (!written.startsWith('"') || !written.includes('\\')) return []
  try {
    return [String(JSON.parse(written))]
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

/** `_auth` is the base64 of a name and a password, and `_password` that of a password. */
function decoded(value: string): string[] {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(value)) return []
  const text = Buffer.from(value, 'base64').toString('utf8')
  // Text that was encoded has no other characters.
  if (!/^[\x20-\x7e\u00a0-\ud7ff]+$/.test(text)) return []
  const colon = text.indexOf(':')
  return colon < 0 ? [text] : [text, text.slice(colon + 1)]
}

/** Each line of a key is searched for, too. */
function privateKeysIn(text: string): string[] {
  return [...text.matchAll(PRIVATE_KEY)].flatMap(({ 0: { length }, index }, at, { [at + 1]: next }) => {
    const body = text.slice(index + length, next?.index)
    const end = body.indexOf('-----END')
    return end < 0 ? [] : [body.slice(0, end).trim()]
  })
}
