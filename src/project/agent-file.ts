/** Reads the definition of an agent from its file: the frontmatter has what it may do, and the text is its prompt. */
import type { AgentDefinition } from '../contract/agents/definition.ts'
import { AgentDefinition as Definition } from '../contract/agents/definition.ts'
import { parseRule } from '../policy/rules/rule.ts'
import type { Frontmatter } from './frontmatter.ts'
import { listOf, textOf } from './frontmatter.ts'
import { NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'
import { modeOfFile } from './settings-file.ts'

type NamedFrontmatter = Frontmatter & { readonly name: string; readonly path: string }

const ParsedAgent = Definition.omit({ description: true })

/**
 * Undefined if the file is not trusted: its agent is listed, and cannot be called. Returns a sentence for a file that is
 * not valid. A restriction is never skipped: then the agent is not loaded.
 */
export function readAgent(
  { isTrusted, ignored, canonicalRule }: SourceContext,
  { name, path, fields, body }: NamedFrontmatter,
): Omit<AgentDefinition, 'description'> | string | undefined {
  if (!isTrusted) {
    ignored.add(`agent ${name}`, path, NOT_TRUSTED)
    return undefined
  }
  const model = modelOf(fields.get('model'))
  if (model?.isAlias) ignored.add(`model of the agent ${name}`, path, 'Name a model of the endpoint, or `inherit`.')
  const mode = textOf(fields.get('permissionMode'))
  const knownMode = mode === undefined ? undefined : modeOfFile(mode)
  if (mode !== undefined && !knownMode) return `permissionMode: ${JSON.stringify(mode)} is not a mode.`
  const rules = listOf(fields.get('disallowedTools')).map((text) => canonicalRule(text))
  const fault = rules.map((rule) => parseRule(rule)).find((rule) => typeof rule === 'string')
  if (typeof fault === 'string') return `disallowedTools: ${fault}`
  const steps = fields.get('maxTurns')
  const parseResult = ParsedAgent.safeParse({
    prompt: body.trim(),
    ...(fields.has('tools') && { tools: toolsOf(fields.get('tools'), canonicalRule) }),
    ...(rules.length > 0 && { disallowed_tools: rules }),
    ...(model && !model.isAlias && { model: model.name }),
    ...(knownMode && { permission_mode: knownMode }),
    ...(steps !== undefined && { max_steps: steps }),
  })
  if (parseResult.success) return parseResult.data
  const [issue] = parseResult.error.issues
  return `Its ${FIELDS[String(issue?.path[0])] ?? 'text'} is not valid: ${issue?.message}`
}

const FIELDS: Readonly<Record<string, string>> = {
  prompt: 'text',
  tools: 'tools',
  disallowed_tools: 'disallowedTools',
  model: 'model',
  max_steps: 'maxTurns',
}

/** Names for models of one provider, which this server cannot know. */
const ALIASES = new Set(['sonnet', 'opus', 'haiku'])

function modelOf(value: unknown): { readonly name: string; readonly isAlias: boolean } | undefined {
  const name = textOf(value)
  return name === undefined || name === 'inherit' ? undefined : { name, isAlias: ALIASES.has(name) }
}

/** Names only: `Bash(git:*)` here means the tool. `*` stands for all. */
function toolsOf(value: unknown, canonicalRule: (text: string) => string): string[] | undefined {
  const names = listOf(value)
  return names.includes('*') ? undefined : names.map((text) => canonicalRule(text.split('(', 1)[0] ?? ''))
}
