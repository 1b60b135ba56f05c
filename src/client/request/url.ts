/** Builds the path and the query of a request. The only file that decides how a value is written into a URL. */
import { AgentServerError } from './agent-server-error.ts'

/** The values of the names in braces. `path` is a path in the workdir, whose slashes stay. */
export type PathParams = Readonly<Record<string, string | number>>

export function pathOf(route: string, params: PathParams = {}): string {
  return route.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(params[name] ?? '')
    return name === 'path' ? encodeFilePath(value) : encodeSegment(value, name)
  })
}

/** Returns an empty text without parameters. Each item of a list is a parameter: a text can have commas. */
export function queryOf(query: object): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) search.append(name, String(each))
  }
  return search.size > 0 ? `?${search.toString()}` : ''
}

function encodeSegment(value: string, name: string): string {
  // A URL with such a segment would lead to another route.
  if (value === '' || isDots(value)) throw new AgentServerError('invalid_argument', `${name} must not be "${value}".`)
  return encodeURIComponent(value)
}

/** A path with `.` or `..` is sent with encoded slashes, so that no URL parser resolves it: the server refuses it. */
function encodeFilePath(path: string): string {
  if (path === '' || isDots(path))
    throw new AgentServerError('invalid_argument', `"${path}" is not the path of a file.`)
  const names = path.split('/')
  return names.some(isDots) ? encodeURIComponent(path) : names.map(encodeURIComponent).join('/')
}

/** URL parsers also resolve dots that are percent-encoded; `encodeURIComponent` makes those harmless. */
const isDots = (text: string): boolean => text === '.' || text === '..'
