/**
 * The name under which a page keeps its half of a login in its `localStorage`: all pages of this server use one login. Below a path
 * of a proxy, the path follows. In a file of its own, so that a page that needs it has no schemas.
 */
export const LOGIN_VALUE_NAME = 'login'
