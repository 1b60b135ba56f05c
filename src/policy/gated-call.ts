/** A call as the gate sees it, and what the gate decides with. */
import type { Places } from './places.ts'
import type { CommandLine } from './shell/command-line.ts'
import type { ToolAccess } from './tool-access.ts'

/** What a call would do, with a command line read. */
export type GatedAction =
  | Exclude<ToolAccess, { kind: 'command' }>
  | { readonly kind: 'command'; readonly line: CommandLine }

export type Question = { readonly tool: string; readonly action: GatedAction; readonly places: Places }
