/** How large the parts of `src/` may be, and what is still larger. */

export const LIMITS = { fileLines: 300, functionLines: 80, functionLinesP90: 18, cycles: 0 }

/**
 * What is still over a limit: a file, or a function as `file#name` -> how much it may have. A number may only go
 * down, and a line goes when its part keeps to the limit.
 */
export const EXCEPTIONS: Readonly<Record<string, { readonly atMost: number; readonly reason: string }>> = {}

/** Names of types that two files still export. */
export const REPEATED_TYPES: ReadonlySet<string> = new Set()

/** Files whose small files stay apart from them, each with the reason. */
export const USERS_OF_SMALL_FILES: Readonly<Record<string, string>> = {
  'tools/registry.ts': 'each tool is one file, and one line here',
}
