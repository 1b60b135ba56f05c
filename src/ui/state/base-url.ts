/** The server serves the page at `ui/`. */
export const BASE_URL = new URL('..', location.origin + location.pathname).href
