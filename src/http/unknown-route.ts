/** Refuses requests for routes that do not exist. */
import { Problem } from '../contract/problem.ts'
import type { RouteTable } from './route-table.ts'

/** What the paths of many other APIs begin with. */
const PREFIX = /^(?:\/api)?(?:\/v\d{1,2})?(?=\/)/

/** Throws `method_not_allowed` for a path that has other methods, and `not_found` otherwise. */
export function refuseUnknown(url: string, routes: RouteTable): never {
  const allow = routes.methodsOf(url)
  if (allow.length > 0)
    throw new Problem('method_not_allowed', `This route answers ${allow.join(', ')}.`, { details: { allow } })
  const prefix = PREFIX.exec(url)?.[0] ?? ''
  if (prefix !== '' && routes.methodsOf(url.slice(prefix.length)).length > 0)
    throw new Problem(
      'not_found',
      `This route does not exist. Leave out ${prefix}: the paths of this API have no prefix.`,
    )
  throw new Problem('not_found', 'This route does not exist. /openapi.json lists all routes.')
}
