/** The cards that describe this server to other agents. The public one says nothing about profiles. */
import type { FastifyRequest } from 'fastify'
import { usableProfiles } from '../../http/guards/usable-profiles.ts'
import type { A2aCall, A2aDeps } from './call.ts'

const PROTOCOL_VERSION = '1.0'

type Skill = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
}

const GENERIC: Skill = {
  id: 'agent',
  name: 'Agent',
  description: 'Works on a task in a directory, with tools, and answers in text.',
  tags: ['agent'],
}

export function agentCard(
  { protocol, host }: FastifyRequest,
  { version, publicUrl = `${protocol}://${host}` }: Pick<A2aDeps, 'version' | 'publicUrl'>,
  skills: readonly Skill[] = [GENERIC],
): object {
  const url = publicUrl.replace(/\/$/, '')
  return {
    name: 'agent-server',
    description: 'Runs agents that work with tools, and ask before they change something.',
    version,
    supportedInterfaces: [
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: PROTOCOL_VERSION },
      { url: `${url}/a2a/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: PROTOCOL_VERSION },
    ],
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'A key of the server.' } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ['text/plain', 'application/json', 'image/png', 'image/jpeg', 'image/gif', 'image/webp'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills,
  }
}

/** Has a skill for each profile that the key may use. */
export async function extendedCard({ deps, request, access }: A2aCall): Promise<object> {
  const { items } = await (await deps.profiles()).list(await usableProfiles(deps.manager, access))
  const skills = items.map(({ name, description }) => ({
    id: name,
    name,
    description: description ?? `Conversations with the profile ${name}.`,
    tags: ['profile'],
  }))
  return agentCard(request, deps, skills.length > 0 ? skills : undefined)
}
