/**
 * The name under which a page keeps its half of a login in its `localStorage`: all pages of this server use one login. Below a path
 * of a proxy, the path follows. It is not next to the schemas of logins, because the page would load these, too.
 */
export const LOGIN_VALUE_NAME = 'login'
