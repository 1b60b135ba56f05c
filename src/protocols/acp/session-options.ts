/** What a person chooses in an editor for a session: the permission mode, the model, and how much it reasons. */
import type { SessionModeState } from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import type { BodyOf } from '../../client/operations/operations.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import { ReasoningEffort } from '../../contract/values/llm-config.ts'
import { PermissionMode } from '../../contract/values/permission.ts'

const MODES: readonly { readonly id: PermissionMode; readonly name: string; readonly description: string }[] = [
  { id: 'default', name: 'Ask', description: 'Asks before what can change something.' },
  { id: 'accept_edits', name: 'Accept edits', description: 'Does not ask about edits in the directory.' },
  { id: 'plan', name: 'Plan', description: 'Denies what can change something.' },
  { id: 'deny', name: 'Do not ask', description: 'Denies what it would have to ask about.' },
  { id: 'bypass', name: 'Bypass', description: 'Does not ask.' },
]

/** A mode that cannot be chosen here is shown while it is in force. */
const modesWith = (current: PermissionMode) =>
  MODES.some(({ id }) => id === current) ? MODES : [...MODES, { id: current, name: current, description: '' }]

type ShownView = Pick<ConversationView, 'state' | 'llm_config' | 'usage'>

export function modesOf({ state: { permission_mode: current } }: ShownView): SessionModeState {
  return { currentModeId: current, availableModes: modesWith(current).map((mode) => ({ ...mode })) }
}

/** `models`: those that the person has listed. The ones of the conversation are added. */
export function optionsOf(view: ShownView, models: readonly string[]) {
  const { llm_config, usage, state } = view
  const { model, fallback_models = [], reasoning_effort: effort } = llm_config
  const knownModels = new Set([
    ...(model === undefined ? [] : [model]),
    ...models,
    ...fallback_models,
    ...Object.keys(usage),
  ])
  const option = (id: string, name: string, currentValue: string, options: { value: string; name: string }[]) =>
    ({ id, name, category: id, type: 'select', currentValue, options }) as const
  const modes = modesWith(state.permission_mode).map(({ id, name, description }) => ({ value: id, name, description }))
  const efforts = [...ReasoningEffort.options].map((value) => ({ value, name: value }))
  return [
    option('mode', 'Permissions', state.permission_mode, modes),
    ...(model === undefined
      ? []
      : [
          option(
            'model',
            'Model',
            model,
            [...knownModels].map((value) => ({ value, name: value })),
          ),
        ]),
    ...(effort === undefined ? [] : [option('thought_level', 'Reasoning', effort, efforts)]),
  ]
}

/** Throws a `RequestError` for what is not among the `options`, as they were sent. Only models have other names, too. */
export function changeOf(options: ReturnType<typeof optionsOf>, id: string, value: unknown): BodyOf<'updateConfig'> {
  if (id === 'model' && typeof value === 'string' && value !== '') return { llm_config: { model: value } }
  const values = options.find((each) => each.id === id)?.options.map((each) => each.value)
  if (!values)
    throw RequestError.invalidParams(undefined, `the options are ${options.map((each) => each.id).join(', ')}`)
  const chosenValue = values.find((each) => each === value)
  if (chosenValue === undefined)
    throw RequestError.invalidParams(undefined, `the value must be one of ${values.join(', ')}`)
  return id === 'mode'
    ? { permission_mode: PermissionMode.parse(chosenValue) }
    : { llm_config: { reasoning_effort: ReasoningEffort.parse(chosenValue) } }
}
