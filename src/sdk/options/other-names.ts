/** Options in the names of the Claude Agent SDK: those that mean the same are understood, and for others an error names ours. */
import { isOtherModeName, MODE_NAMES } from '../../contract/mode-names.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { invalid } from '../errors/invalid.ts'
import type { AgentOptions, ModeName, OtherNames, QueryOptions, WireMode } from './query-options.ts'

/** What a query works with: `maxSteps` and no `maxTurns`. */
export type OwnOptions = Omit<QueryOptions, keyof OtherNames | 'permissionMode' | 'agents'> & {
  readonly permissionMode?: WireMode | undefined
  readonly agents?: Readonly<Record<string, OwnAgentOptions>> | undefined
}
type OwnAgentOptions = Omit<AgentOptions, 'maxTurns' | 'permissionMode'> & {
  readonly permissionMode?: WireMode | undefined
}

/** Call it with checked options. Throws if both names of an option are given. */
export function withOwnNames(options: QueryOptions): OwnOptions {
  const { maxTurns, effort, fallbackModel, outputFormat, forkSession, permissionMode, agents, ...same } = options
  const llm = withoutUndefined({
    ...options.llm,
    reasoningEffort: either('effort', effort, 'llm.reasoningEffort', options.llm?.reasoningEffort),
    fallbackModels: either(
      'fallbackModel',
      fallbackModel === undefined ? undefined : [fallbackModel],
      'llm.fallbackModels',
      options.llm?.fallbackModels,
    ),
  })
  return {
    ...same,
    maxSteps: either('maxTurns', maxTurns, 'maxSteps', options.maxSteps),
    outputSchema: either('outputFormat', outputFormat?.schema, 'outputSchema', options.outputSchema),
    fork: either('forkSession', forkSession, 'fork', options.fork),
    llm: Object.keys(llm).length > 0 ? llm : undefined,
    permissionMode: permissionMode && ownMode(permissionMode),
    agents: agents && Object.fromEntries(Object.entries(agents).map(([name, agent]) => [name, ownAgent(agent)])),
  }
}

export const ownMode = (mode: ModeName): WireMode => (isOtherModeName(mode) ? MODE_NAMES[mode] : mode)

function ownAgent({ maxTurns, permissionMode, ...same }: AgentOptions): OwnAgentOptions {
  const maxSteps = either('maxTurns', maxTurns, 'maxSteps', same.maxSteps)
  return { ...same, maxSteps, permissionMode: permissionMode && ownMode(permissionMode) }
}

function either<Other, Own>(otherName: string, other: Other, name: string, own: Own): Other | Own {
  if (other === undefined) return own
  if (own !== undefined) throw invalid(`${otherName} and ${name} are the same option. Pass one of them.`)
  return other
}

const NO_PROGRAM = 'No other program is started: leave it out.'
const ALWAYS = 'A query always yields these events: leave it out.'
const SETTINGS = 'Use settingSources, or the options themselves.'

/** What to use instead of an option of the Claude Agent SDK that has another meaning, or none here. */
export const INSTEAD_OF_OPTION: Readonly<Record<string, string>> = {
  allowDangerouslySkipPermissions: 'permissionMode is enough: leave it out.',
  executable: NO_PROGRAM,
  executableArgs: NO_PROGRAM,
  extraArgs: NO_PROGRAM,
  pathToClaudeCodeExecutable: NO_PROGRAM,
  stderr: NO_PROGRAM,
  includeHookEvents: ALWAYS,
  forwardSubagentText: ALWAYS,
  settings: SETTINGS,
  managedSettings: SETTINGS,
  skills: 'Use settingSources, which loads them.',
  agent: 'Use systemPrompt and tools. The agents of agents are for the tool Task.',
  onElicitation: 'Use answerQuestions.',
  permissionPrompts: "Instead of 'none', use permissionMode: 'deny'.",
  sessionStore: 'Use persistDir, or a server.',
  sandbox: 'It is a setting of the server: OPENHANDS_ISOLATION.',
  maxThinkingTokens: 'Use effort.',
  thinking: 'Use effort.',
  permissionPromptToolName: 'Use canUseTool.',
  persistSession: 'Delete the session when it has ended: sessions().delete(id).',
  strictMcpConfig: 'Only mcpServers are used, unless settingSources names more: leave it out.',
}
