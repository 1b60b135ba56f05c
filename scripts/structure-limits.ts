/** How large the parts of `src/` may be, and what is still larger. */

export const LIMITS = { filesPerFolder: 20, fileLines: 300, functionLines: 80, functionLinesP90: 18, cycles: 0 }

const UNDER_WAY = 'is being split: one conversation object over parts that are built in the order of need'

/**
 * What is still over a limit: a folder, a file, or a function as `file#name` -> how much it may have. A number may only go
 * down, and a line goes when its part keeps to the limit.
 */
export const EXCEPTIONS: Readonly<Record<string, { readonly atMost: number; readonly reason: string }>> = {
  'app.ts': { atMost: 406, reason: UNDER_WAY },
  'app.ts#startApp': { atMost: 93, reason: UNDER_WAY },
  'app.ts#createManager': { atMost: 96, reason: UNDER_WAY },
  'conversations/assemble.ts': { atMost: 322, reason: UNDER_WAY },
  'conversations/assemble.ts#assemble': { atMost: 167, reason: UNDER_WAY },
  'conversations/assembly.ts#createAssembler': { atMost: 114, reason: UNDER_WAY },
  'conversations/conversation.ts': { atMost: 408, reason: UNDER_WAY },
  'conversations/exec/carry-out.ts#createCommandCarrier': { atMost: 109, reason: UNDER_WAY },
  'conversations/exec/client-commands.ts#createClientCommands': { atMost: 183, reason: UNDER_WAY },
  'conversations/files/file-changes.ts#createFileChanges': { atMost: 127, reason: UNDER_WAY },
  'conversations/registry/manager.ts': { atMost: 424, reason: UNDER_WAY },
  'conversations/state/commands.ts': { atMost: 317, reason: UNDER_WAY },
  'conversations/state/state.ts': { atMost: 331, reason: UNDER_WAY },
  'conversations/webhooks/callbacks.ts#callbackCommands': { atMost: 99, reason: UNDER_WAY },
  'telemetry/metrics.ts#createMetrics': { atMost: 140, reason: 'one recorder for each metric; is to be a class' },
}

/** Names of types that two files still export. */
export const REPEATED_TYPES: ReadonlySet<string> = new Set(['Command', 'Noted'])
