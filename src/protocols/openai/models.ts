/** The models of this API: profiles, and models of the server's endpoint if the operator allows them. */
import type { Access } from '../../access/access.ts'
import { isOfServer } from '../../conversations/config/llm-origin.ts'
import { parseNewLlm } from '../../conversations/config/settings.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { SeesProfile } from '../../conversations/profiles/profiles.ts'
import { usableProfiles } from '../../http/guards/usable-profiles.ts'
import { invalid } from '../shared/fields.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { unknownModel } from './openai-error.ts'

type ModelDeps = Pick<GatewayDeps, 'profiles' | 'plainModels'>

type ModelObject = {
  readonly id: string
  readonly object: 'model'
  readonly created: number
  readonly owned_by: string
}

/** What the `model` of a request names. A plain one is not a profile: it answers without tools of the server. */
export type AskedModel = { readonly name: string; readonly isPlain: boolean }

/** The endpoint may have more plain models than the one of the server. */
export async function listModels(deps: GatewayDeps, access: Access): Promise<readonly ModelObject[]> {
  const profiles = await profilesOf(deps, await usableProfiles(deps.manager, access))
  const own = mayCreatePlain(access) ? deps.plainModels?.model : undefined
  if (own === undefined || profiles.some(({ id }) => id === own)) return profiles
  return [...profiles, modelObject(own)]
}

/** Throws the error of OpenAI for a model that is not in the list. */
export async function usableModel(deps: GatewayDeps, access: Access, model: string): Promise<ModelObject> {
  const listedModel = (await listModels(deps, access)).find(({ id }) => id === model)
  if (listedModel) return listedModel
  throw unknownModel()
}

/** Throws the error of OpenAI. That the conversation of the request has the model is checked later. */
export async function requireModel(deps: ModelDeps, { limits }: Access, name: string): Promise<AskedModel> {
  const isWanted = (each: string) => each === name && (limits.profiles?.has(name) ?? true)
  if ((await profilesOf(deps, isWanted)).length > 0) return { name, isPlain: false }
  if (limits.profiles || !isServed(deps, name)) throw unknownModel()
  return { name, isPlain: true }
}

/** A limited key uses the models of what it is limited to. */
const mayCreatePlain = ({ limits }: Access): boolean => !limits.profiles && !limits.conversations

/** A name can lead to the endpoint of another vendor, which gets nothing from here. */
function isServed({ plainModels }: ModelDeps, model: string): boolean {
  return plainModels !== undefined && isOfServer(parseNewLlm({ model }, plainModels).config, plainModels)
}

/** What a conversation is created with. The prompt of the server is for agents, and says where they work. */
export const creationOfModel = ({ name, isPlain }: AskedModel) =>
  isPlain
    ? { settings: { llm_config: { model: name }, tools: [], system_prompt: 'You are a helpful assistant.' } }
    : { profile: name }

type WithSettings = { readonly state: Pick<Conversation['state'], 'settings'> }

/** The name of the model that a conversation has. Without a profile it has the settings of the server, as `default` at first. */
export function modelOf({ state: { settings } }: WithSettings): string {
  return settings.profile ?? plainModelOf(settings) ?? 'default'
}

/** Returns false, too, for a conversation with tools and a plain model. */
export const isOfModel = ({ state: { settings } }: WithSettings, { name, isPlain }: AskedModel): boolean =>
  (isPlain ? plainModelOf(settings) : (settings.profile ?? 'default')) === name

/** Throws a `Problem` if the conversation was created with another model. */
export function refuseOther(conversation: WithSettings, model: AskedModel): void {
  if (isOfModel(conversation, model)) return
  throw invalid('model', `must be ${modelOf(conversation)}, with which the conversation was created`)
}

/** Undefined: it has a profile, or something to work with. */
function plainModelOf(settings: WithSettings['state']['settings']): string | undefined {
  const { profile, tools, mcp = {}, agents, project_settings, llm_config } = settings
  const isPlain = profile === undefined && tools.length + Object.keys(mcp).length === 0 && !agents && !project_settings
  return isPlain ? llm_config.model : undefined
}

async function profilesOf({ profiles }: ModelDeps, isWanted: SeesProfile): Promise<readonly ModelObject[]> {
  const items = await (await profiles()).names(isWanted)
  return items.map(({ name, created_at }) => modelObject(name, created_at))
}

function modelObject(id: string, createdAt?: string): ModelObject {
  const createdSeconds = createdAt === undefined ? 0 : Math.floor(Date.parse(createdAt) / 1000)
  return { id, object: 'model', created: createdSeconds, owned_by: 'agent-server' }
}
