/** The conversation that a request creates: of a profile, with the functions and the instructions of the client. */
import type { Access } from '../../access/access.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { CreateConversation } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import { createAs } from '../../http/guards/limited-requests.ts'
import type { GatewayDeps } from './gateway-deps.ts'
import { parseField } from './fields.ts'

type CreateFields = {
  /** Undefined: `settings` say what the profile would say. */
  readonly profile?: string | undefined
  readonly settings?: Pick<CreateConversation, 'llm_config' | 'tools' | 'system_prompt'>
  readonly tools: readonly ClientTool[]
  readonly metadata: object | null | undefined
  /** Left out for a key that `mayNotInstruct`. */
  readonly instructions?: string | null | undefined
  readonly externalId?: string | undefined
}

/** A key that is limited to profiles must not change the system prompt: its instructions are a part of the first message. */
export const mayNotInstruct = ({ limits }: Access): boolean => limits.profiles !== undefined

/** Calls that change something need a decision unless the profile has a mode. Throws a `Problem` if the key may not create it. */
export async function createRequestFor(
  deps: GatewayDeps,
  access: Access,
  { profile, settings, tools, metadata, instructions, externalId }: CreateFields,
): Promise<CreateConversation> {
  const sentFields = {
    ...settings,
    ...(profile !== undefined && { profile }),
    ...(externalId !== undefined && { external_id: externalId }),
    ...(tools.length > 0 && { client_tools: tools }),
    ...(metadata && { metadata }),
  }
  return {
    ...createAs(access, parseField(CreateConversation, sentFields)),
    ...(!(profile !== undefined && (await hasMode(deps, profile))) && { permission_mode: 'default' as const }),
    ...(instructions && !mayNotInstruct(access) && { system_prompt_extensions: [instructions] }),
  }
}

/** Whether the profile says which calls need a decision. */
export async function hasMode({ profiles }: Pick<GatewayDeps, 'profiles'>, profile: string): Promise<boolean> {
  try {
    const { permission_mode, confirmation_mode } = await (await profiles()).get(profile)
    return permission_mode !== undefined || confirmation_mode !== undefined
  } catch (error) {
    if (error instanceof Problem) return false
    throw error
  }
}
