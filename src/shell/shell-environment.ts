/** Filters the server's environment for shells by an allow-list, so that it never contains a key of the server. */
import { isAbsolute } from 'node:path'

const CERTIFICATES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']

const PASSED_ON = new Set(
  ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR'].concat(
    CERTIFICATES,
    ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ),
)

/** Disables paging, prompts and drawing, because there is no terminal. */
const UNATTENDED = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: '',
  GIT_TERMINAL_PROMPT: '0',
  DEBIAN_FRONTEND: 'noninteractive',
  PIP_NO_INPUT: '1',
}

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Returns the environment of a new shell. The server's own variables are never included, from any source. */
export function shellEnvironment(
  serverEnv: Readonly<Record<string, string | undefined>>,
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const passed = Object.entries(serverEnv).filter(([name]) => PASSED_ON.has(name) || name.startsWith('LC_'))
  const all = { PATH: DEFAULT_PATH, ...Object.fromEntries(passed), ...UNATTENDED, ...extra }
  const own = Object.entries(all).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !isServerVariable(entry[0]),
  )
  return Object.fromEntries(own)
}

/** Returns the files named in it, without which programs fail. */
export function pathsNamedIn(env: Readonly<Record<string, string>>): string[] {
  return CERTIFICATES.flatMap((name) => env[name]?.split(':') ?? []).filter(isAbsolute)
}

function isServerVariable(name: string): boolean {
  return name.startsWith('OPENHANDS_') || name.startsWith('LLM_')
}
