/** What a person calls a browser that has this `User-Agent`. Pure. */

/** The first that is there: most name themselves and what they were made from. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
] as const
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['Linux', 'Linux'],
] as const

export function browserName(userAgent: string): string {
  const [browser, system] = [BROWSERS, SYSTEMS].map((names) => names.find(([word]) => userAgent.includes(word))?.[1])
  return userAgent.startsWith('Mozilla/') && browser && system ? `${browser}, ${system}` : userAgent
}
