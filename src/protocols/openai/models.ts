/** Profiles are the models of this API. */
import type { Access } from '../../access/access.ts'
import type { Profiles, SeesProfile } from '../../conversations/profiles/profiles.ts'
import { usableProfiles } from '../../http/guards/usable-profiles.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { OpenAiError } from './openai-error.ts'

type ModelDeps = { readonly profiles: () => Promise<Profiles> }

type ModelObject = {
  readonly id: string
  readonly object: 'model'
  readonly created: number
  readonly owned_by: string
}

export const listModels = async (deps: GatewayDeps, access: Access): Promise<readonly ModelObject[]> =>
  await modelsOf(deps, await usableProfiles(deps.manager, access))

/** Throws the error of OpenAI for a model that is not in the list. */
export async function usableModel(deps: GatewayDeps, access: Access, model: string): Promise<ModelObject> {
  const isUsable = await usableProfiles(deps.manager, access)
  return await onlyModel(deps, (name) => name === model && isUsable(name))
}

/** The same for the model of a request. That the conversation of the request has it is checked later. */
export async function requireModel(deps: ModelDeps, { limits }: Access, model: string): Promise<ModelObject> {
  return await onlyModel(deps, (name) => name === model && (limits.profiles?.has(name) ?? true))
}

async function onlyModel(deps: ModelDeps, isWanted: SeesProfile): Promise<ModelObject> {
  const [wantedModel] = await modelsOf(deps, isWanted)
  if (wantedModel) return wantedModel
  throw new OpenAiError(404, `The model does not exist, or you have no access to it. GET /v1/models lists yours.`, {
    code: 'model_not_found',
    param: 'model',
  })
}

async function modelsOf({ profiles }: ModelDeps, isWanted: SeesProfile): Promise<readonly ModelObject[]> {
  const items = await (await profiles()).names(isWanted)
  return items.map(({ name, created_at }) => {
    const createdSeconds = created_at === undefined ? 0 : Math.floor(Date.parse(created_at) / 1000)
    return { id: name, object: 'model', created: createdSeconds, owned_by: 'agent-server' }
  })
}
