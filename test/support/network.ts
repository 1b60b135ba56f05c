/** Conversations in a network mode on a server with the sandbox, and their commands. */
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Stage } from './agent.ts'
import { bash, setStage } from './agent.ts'

export type NetworkScene = Stage & {
  /** Runs a command in the conversation, as a client does; answers what it wrote, with its exit code last. */
  readonly run: (id: string, command: string) => Promise<string>
}

/** The agent runs the command that the message has. */
const OBEDIENT: Script = ({ body }) => {
  const { role, content } = body.messages.at(-1)!
  return role === 'user' ? bash(content as string) : { text: 'Done.' } // these tests say text alone
}

/** `names` lead to ports of this machine, by leave of the operator. */
export async function setNetworkScene(
  names: Readonly<Record<string, number>>,
  env: Record<string, string> = {},
): Promise<NetworkScene> {
  const privateHosts = Object.entries(names).map(([name, port]) => `${name}=127.0.0.1:${port}`)
  const stage = await setStage(OBEDIENT, {
    env: { OPENHANDS_ISOLATION: 'bubblewrap', OPENHANDS_NETWORK_PRIVATE_ALLOW: privateHosts.join(','), ...env },
  })
  return Object.assign(stage, {
    async run(id: string, command: string) {
      const { status, body } = await stage.server.call('POST', `/conversations/${id}/commands`, {
        command,
        timeout: 120,
      })
      if (status !== 200) throw new Error(`command: ${status} ${JSON.stringify(body)}`)
      return `${body.stdout}${body.stderr}${body.exit_code}`
    },
  })
}
