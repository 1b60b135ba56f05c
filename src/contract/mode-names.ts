/** Permission modes as the Claude Agent SDK and Claude Code call them. The other modes have the same names. Loads nothing. */
export const MODE_NAMES = { acceptEdits: 'accept_edits', bypassPermissions: 'bypass', dontAsk: 'deny' } as const
export type OtherModeName = keyof typeof MODE_NAMES

export const isOtherModeName = (name: string): name is OtherModeName => Object.hasOwn(MODE_NAMES, name)
