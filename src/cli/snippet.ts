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
      const key = server === undefined ? '' : '-e OPENHANDS_MASTER_KEY="$KEY" '
      return `claude mcp add agent-server ${key}-- ${[command, ...argsOf('mcp')].map(quote).join(' ')}\n`
    }
    case 'codex': {
      const key = server === undefined ? '' : 'env_vars = ["OPENHANDS_MASTER_KEY"]\n'
      return `[mcp_servers.agent-server]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(argsOf('mcp'))}\n${key}`
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
