/** Compares an answer with the JSON that a page shows for it. */

/** The first place where a page says something else than the answer; undefined if there is none. */
export function differenceOf(shown: unknown, actual: unknown, path = ''): string | undefined {
  if (typeof shown === 'string' && shown.includes('…'))
    return fits(shown, actual) ? undefined : say(path, shown, actual)
  if (typeof shown !== 'object' || shown === null) return shown === actual ? undefined : say(path, shown, actual)
  if (typeof actual !== 'object' || actual === null) return say(path, shown, actual)
  const given = actual as Record<string, unknown>
  for (const [name, value] of Object.entries(shown)) {
    const difference = differenceOf(value, given[name], `${path}.${name}`)
    if (difference !== undefined) return difference
  }
  return undefined
}

/** An ellipsis stands for any text, and alone also for any other value. */
function fits(pattern: string, actual: unknown): boolean {
  if (pattern === '…') return actual !== undefined
  const parts = pattern.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`))
  return typeof actual === 'string' && new RegExp(`^${parts.join('[^]*')}$`).test(actual)
}

const say = (path: string, shown: unknown, actual: unknown) =>
  `${path}: the page has ${JSON.stringify(shown)}, the server ${JSON.stringify(actual)}`
