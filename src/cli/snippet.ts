/** `agent-server snippet`: what to paste into another program, with the path of this one or the URL of a server. */
import type { SnippetInvocation } from './command-line/read-arguments.ts'
import { quote } from '../shell/bash-script.ts'
import { argumentsOfThisProcess } from './own-command.ts'
import { useChatSnippet } from './use-chat-snippet.ts'

const DEFAULT_SERVER = 'http://localhost:8000'

/** Contains no key: programs pass on that of the environment, or the person adds it. */
export function snippet({ of, server }: SnippetInvocation): string {
  const [command, ...own] = argumentsOfThisProcess()
  const argsOf = (name: string) => [...own, name, ...(server === undefined ? [] : ['--server', server])]
  const env = server === undefined ? {} : { OPENHANDS_MASTER_KEY: 'the key of the server' }
  switch (of) {
    case 'zed':
      return `${JSON.stringify({ agent_servers: { 'agent-server': { type: 'custom', command, args: argsOf('acp'), env } } }, null, 2)}\n`
    case 'claude': {
      const add = 'claude mcp add'
      if (server !== undefined)
        return `${add} --transport http agent-server ${quote(mcpUrl(server))} --header "Authorization: Bearer $KEY"\n`
      return `${add} agent-server -- ${[command, ...argsOf('mcp')].map(quote).join(' ')}\n`
    }
    case 'codex': {
      const program = { command, args: argsOf('mcp') }
      const remote = server !== undefined && { url: mcpUrl(server), bearer_token_env_var: 'OPENHANDS_MASTER_KEY' }
      const lines = Object.entries(remote || program).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
      return `[mcp_servers.agent-server]\n${lines.join('\n')}\n`
    }
    case 'openwebui':
      return openWebUi(`${(server ?? DEFAULT_SERVER).replace(/\/$/, '')}/v1`)
    case 'usechat':
      return useChatSnippet((server ?? DEFAULT_SERVER).replace(/\/$/, ''))
    case 'curl': {
      const url = (server ?? DEFAULT_SERVER).replace(/\/$/, '')
      const body = JSON.stringify({ initial_message: 'Say hello.', run: true, wait: true })
      return `curl ${quote(`${url}/conversations`)} -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d ${quote(body)}\n`
    }
    default:
      return of satisfies never
  }
}

const mcpUrl = (server: string): string => `${server.replace(/\/$/, '')}/mcp`

/** Open WebUI asks the agent for titles and the like, if nothing turns that off. */
const SETTINGS_OF_OPEN_WEBUI = {
  ENABLE_FORWARD_USER_INFO_HEADERS: 'true',
  ENABLE_TITLE_GENERATION: 'false',
  ENABLE_TAGS_GENERATION: 'false',
  ENABLE_FOLLOW_UP_GENERATION: 'false',
}

/** Uses the network of the host, so that it reaches a server that listens on localhost. */
function openWebUi(url: string): string {
  const fixedOptions = Object.entries(SETTINGS_OF_OPEN_WEBUI).map(([name, value]) => `-e ${name}=${value}`)
  const settings = [`-e OPENAI_API_BASE_URL=${quote(url)}`, '-e OPENAI_API_KEY="$KEY"', ...fixedOptions]
  const rest = ['-v open-webui:/app/backend/data', 'ghcr.io/open-webui/open-webui:main']
  return `docker run -d --network=host ${[...settings, ...rest].join(' ')}\n`
}
