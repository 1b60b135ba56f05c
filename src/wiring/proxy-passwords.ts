/** The passwords of proxies in the server's environment. Commands have them, because programs find proxies by these variables. */

const VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'https_proxy', 'http_proxy', 'all_proxy']

/** Name of the variable -> the password, and what a client encodes in base64 for the proxy. */
export function proxyPasswords(
  environment: Readonly<Record<string, string | undefined>>,
): readonly (readonly [name: string, values: readonly string[]])[] {
  return VARIABLES.flatMap((name) => {
    const values = passwordsIn(environment[name] ?? '')
    return values.length > 0 ? [[name, values] as const] : []
  })
}

/** A proxy may be written without `http://`. */
function passwordsIn(value: string): readonly string[] {
  const url = URL.parse(value.includes('://') ? value : `http://${value}`)
  if (!url?.password) return []
  const [user, password] = [decodePart(url.username), decodePart(url.password)]
  return [password, `${user}:${password}`]
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
