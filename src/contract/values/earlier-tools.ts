/**
 * Other names of some tools: those of earlier versions, and of later versions of Claude Code. Settings, rules and matchers of
 * hooks can have them.
 */

const NOW: ReadonlyMap<string, string> = new Map([
  ['file_read', 'Read'],
  ['file_write', 'Write'],
  ['shell_exec', 'Bash'],
  ['Agent', 'Task'],
])

/** Returns the name of the tool in this version. */
export const currentTool = (name: string): string => NOW.get(name) ?? name

/** Each once. */
export const currentTools = (names: readonly string[]): string[] => [...new Set(names.map(currentTool))]

export const earlierNames = (tool: string): string[] => [...NOW].flatMap(([name, now]) => (now === tool ? [name] : []))

/** The entries of earlier names are those of the tool, unless it has one. */
export function withCurrentTools(byTool: unknown): unknown {
  if (typeof byTool !== 'object' || byTool === null) return byTool
  const entries = Object.entries(byTool)
  const own = entries.filter(([name]) => !NOW.has(name))
  return Object.fromEntries([...entries.map(([name, value]) => [currentTool(name), value]), ...own])
}
