/** The environment variables by which programs in a sandbox find the proxy of their conversation. */

/** Fixed, because each sandbox has a separate network namespace. */
export const PROXY_PORT = 3128
const PROXY_URL = `http://127.0.0.1:${PROXY_PORT}`
const OWN_HOSTS = 'localhost,127.0.0.1,::1'

/**
 * The variables do not use `socks5h` for the rest (`ALL_PROXY`): Python's httpx fails at startup with it unless an
 * extra package is installed. No options for Java either: each of its programs would print a line about them.
 */
export const PROXY_VARIABLES: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY_URL,
  HTTPS_PROXY: PROXY_URL,
  ALL_PROXY: PROXY_URL,
  NO_PROXY: OWN_HOSTS,
  http_proxy: PROXY_URL,
  https_proxy: PROXY_URL,
  all_proxy: PROXY_URL,
  no_proxy: OWN_HOSTS,
  // Node's own fetch and http only use the proxy variables if this is set.
  NODE_USE_ENV_PROXY: '1',
}
