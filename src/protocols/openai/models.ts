/** Profiles are the models of this API. */
import type { Access } from '../../access/access.ts'
import type { Profiles, SeesProfile } from '../../conversations/profiles/profiles.ts'
import { OpenAiError } from './openai-error.ts'

type ModelDeps = { readonly profiles: () => Promise<Profiles> }

type ModelObject = {
  readonly id: string
  readonly object: 'model'
  readonly created: number
  readonly owned_by: string
}

export async function listModels(
  { profiles }: ModelDeps,
  access: Access,
  isWanted: SeesProfile = () => true,
): Promise<readonly ModelObject[]> {
  const allowedNames = access.limits.profiles
  const sees: SeesProfile = (name) => isWanted(name) && (allowedNames?.has(name) ?? true)
  const items = await (await profiles()).names(sees)
  return items.map(({ name, created_at }) => {
    const createdSeconds = created_at === undefined ? 0 : Math.floor(Date.parse(created_at) / 1000)
    return { id: name, object: 'model', created: createdSeconds, owned_by: 'agent-server' }
  })
}

/** Throws the error of OpenAI for a model that does not exist, also for one that the key may not use. */
export async function requireModel(deps: ModelDeps, access: Access, model: string): Promise<ModelObject> {
  const [wantedModel] = await listModels(deps, access, (name) => name === model)
  if (wantedModel) return wantedModel
  throw new OpenAiError(404, `The model does not exist, or you have no access to it. GET /v1/models lists yours.`, {
    code: 'model_not_found',
    param: 'model',
  })
}
