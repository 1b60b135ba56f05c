/**
 * Makes git use a conversation's tokens for their hosts, by configuration that exists only in the environment of
 * commands.
 */

type Host = { readonly token: string; readonly host: string; readonly user: string }

/** The user name for token access on each host. */
const HOSTS: readonly Host[] = [
  { token: 'GITHUB_TOKEN', host: 'github.com', user: 'x-access-token' },
  { token: 'GITLAB_TOKEN', host: 'gitlab.com', user: 'oauth2' },
  { token: 'BITBUCKET_TOKEN', host: 'bitbucket.org', user: 'x-token-auth' },
]

/**
 * Returns variables for `git` (GIT_CONFIG_COUNT and related ones). They name the token's variable, never the token:
 * git's helper reads it on demand. The user's other configuration stays in effect, including other helpers for other
 * hosts.
 */
export function gitCredentialEnv(secrets: Readonly<Record<string, string>>): Record<string, string> {
  const settings = HOSTS.filter(({ token }) => isOneLine(secrets[token])).flatMap(({ token, host, user }) => {
    const key = `credential.https://${host}.helper`
    return [
      // Empty: removes the helpers that were configured before. A storing helper would write the token to its file.
      [key, ''],
      [key, `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' ${user} "$${token}"; }; f`],
    ]
  })
  if (settings.length === 0) return {}
  const entries = settings.flatMap(([key = '', value = ''], at): [string, string][] => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ])
  return Object.fromEntries<string>([['GIT_CONFIG_COUNT', String(settings.length)], ...entries])
}

/** Git's protocol has one line per value; a second line would be another value. */
const isOneLine = (value: string | undefined) => value !== undefined && !/[\r\n]/.test(value)
