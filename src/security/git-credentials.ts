/** Has git use a conversation's tokens for their hosts, by configuration that is nowhere but in the environment of commands. */

type Host = { readonly token: string; readonly host: string; readonly user: string }

/** Each host's own name for "whoever has this token". */
const HOSTS: readonly Host[] = [
  { token: 'GITHUB_TOKEN', host: 'github.com', user: 'x-access-token' },
  { token: 'GITLAB_TOKEN', host: 'gitlab.com', user: 'oauth2' },
  { token: 'BITBUCKET_TOKEN', host: 'bitbucket.org', user: 'x-token-auth' },
]

/**
 * Variables for `git` (GIT_CONFIG_COUNT and what belongs to it). They name the token's variable, never the token: git's
 * helper reads it when it is asked. Other configuration of the user goes on to count, other helpers for other hosts too.
 */
export function gitCredentialEnv(secrets: Readonly<Record<string, string>>): Record<string, string> {
  const settings = HOSTS.filter(({ token }) => isOneLine(secrets[token])).flatMap(({ token, host, user }) => {
    const key = `credential.https://${host}.helper`
    return [
      // Empty: forgets the helpers that were configured before. One that stores would write the token to its file.
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

/** Git's protocol has a line for each value; another line would be another value. */
const isOneLine = (value: string | undefined) => value !== undefined && !/[\r\n]/.test(value)
