/** What is on the screens of which pictures are taken: conversations in each state, some of them long, some in trouble. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Script, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../../test/support/agent.ts'
import { bash } from '../../test/support/agent.ts'

const TOTAL = '#!/usr/bin/env bash\nawk -F, \'NR > 1 { sum += $2 } END { print sum }\' "$1"\n'
const PLAN = ['Read the file', 'Write total.sh', 'Test it'].map((title, index) => ({
  title,
  status: index === 2 ? 'in_progress' : 'done',
}))
/** The agent looks at a CSV file, and writes and runs a script that adds it up. */
export const WRITES_TOTAL: readonly ScriptedTurn[] = [
  {
    reasoning: 'First I look at the file.',
    calls: [{ name: 'TaskTracker', arguments: { command: 'plan', task_list: PLAN } }],
  },
  bash("printf 'name,amount\\napples,12\\npears,30\\n' > example.csv && head example.csv"),
  {
    text: 'The second column is the amount, and the first line is a header. I write the script:',
    calls: [
      { name: 'FileEditor', arguments: { command: 'create', path: 'total.sh', file_text: TOTAL } },
      { name: 'Bash', arguments: { command: 'bash total.sh example.csv' } },
    ],
  },
]
const LONG_NAME = 'a-very-long-name-without-any-blank-'.repeat(5)
const ANSWER = `## What was found

The parser reads the **whole file** before it splits it, see [the issue](https://example.com/issues/17).

1. \`readFile\` needs 1.2 GB for a file of 600 MB.
2. The lines are kept *and* copied.

| file | before | after |
|---|---|---|
| \`parse.ts\` | 1.2 GB | 14 MB |
| \`lines.ts\` | 610 MB | 2 MB |

\`\`\`ts
for await (const line of linesOf(path)) total += Number(line.split(',')[1])
\`\`\`

> Nothing else changes.
`
const edit = { command: 'str_replace', path: 'total.sh', old_str: 'sum += $2', new_str: 'sum += $2 + 0' }
const question = {
  question: 'Which database should the service use?',
  header: 'Database',
  options: [
    { label: 'PostgreSQL', description: 'It runs already, and has backups.' },
    { label: 'SQLite', description: 'One file, nothing to operate.' },
  ],
}

export const SCREEN_SCRIPT: Script = {
  replies: [
    {
      when: 'total',
      turns: [
        ...WRITES_TOTAL,
        { calls: [{ name: 'FileEditor', arguments: edit }] },
        bash("bash total.sh missing.csv; printf '\\033[31mred\\033[0m \\033[32mgreen\\033[0m\\n'; exit 2"),
        {
          text: '`total.sh` adds up the **second column**: 42 for the example. A file that is missing is an error.',
          usage: { prompt_tokens: 12_000, completion_tokens: 900 },
        },
      ],
    },
    {
      when: 'work',
      turns: [{ text: 'I run the tests.', ...bash('echo "14 of 212 passed"; sleep 3600', { timeout: 3600 }) }],
    },
    { when: 'publish', turns: [bash('git push origin main && npm publish --access public')] },
    { when: 'ask', turns: [{ calls: [{ name: 'AskUserQuestion', arguments: { questions: [question] } }] }] },
    { when: 'break', turns: [{ status: 401, error: { message: 'Incorrect API key provided: sk-…17.' } }] },
    { when: 'explain', turns: [bash('seq 1 5000'), { reasoning: 'I compare both.', text: ANSWER.repeat(3) }] },
    { when: 'spend', turns: [{ text: 'Done.', usage: { prompt_tokens: 40_000, completion_tokens: 5000 } }] },
  ],
}

export type StageIds = Readonly<
  Record<'done' | 'running' | 'permission' | 'question' | 'failed' | 'empty' | 'long' | 'servers', string>
>

/** The server that webhooks are delivered to, and an MCP server that needs an authorization. */
type Outside = { readonly receiverUrl: string; readonly mcpUrl: string }

export async function fillStage(stage: Stage, { receiverUrl, mcpUrl }: Outside): Promise<StageIds> {
  const post = (id: string, message: string) =>
    stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  const workdir = repositoryIn(stage.server.home)
  await spendOn(stage)
  const done = await stage.create({ title: 'Totals of CSV files', labels: ['reports', 'csv'], workdir })
  const failed = await stage.create({ title: 'Nightly import' })
  const long = await stage.create({ title: LONG_NAME, labels: ['a label that is rather long', 'x'], user_id: 'ada' })
  const empty = await stage.create({ title: 'Nothing yet' })
  const running = await stage.create({ labels: ['ci'] })
  const permission = await stage.create({ title: 'Release', permission_mode: 'default', user_id: 'grace' })
  const asking = await stage.create({ title: 'New service', tools: ['AskUserQuestion'] })
  await stage.say(done, 'Write total.sh, which adds up a CSV file. The total of example.csv must be 42.')
  await stage.server.call('POST', `/conversations/${done}/commands`, { command: 'ls -la; exit 3' })
  await stage.say(failed, 'break')
  await stage.say(long, `explain ${'and say why that is so '.repeat(30)}`)
  await post(running, 'Please work through the tests of the whole repository.')
  await post(permission, 'publish')
  await post(asking, 'ask')
  await post(running, 'And tell me which one is the slowest, please.')
  await stage.server.call('POST', `/conversations/${done}/callbacks`, { url: `${receiverUrl}/hooks/agents` })
  await stage.server.call('POST', `/conversations/${done}/callbacks`, { url: 'http://127.0.0.1:9/refused' })
  await post(done, 'spend')
  const servers = await withServers(stage, mcpUrl)
  await stage.server.call('POST', '/keys', { name: 'nightly', scopes: ['read', 'write'] })
  await stage.server.call('POST', '/keys', { name: 'reviews', scopes: ['read', 'approve', 'files'], user_id: 'ada' })
  return { done, running, permission, question: asking, failed, empty, long, servers }
}

async function spendOn(stage: Stage): Promise<void> {
  const prices = { input_cost_per_token: 0.00001, output_cost_per_token: 0.00003 }
  for (const model of ['gpt-5', 'claude-sonnet-4-5', 'small']) {
    const llm_config = { model, base_url: stage.model.baseUrl, api_key: 'scripted-model-key', ...prices }
    const id = await stage.create({ llm_config, title: `Review with ${model}`, labels: ['review'], user_id: 'ada' })
    await stage.say(id, 'spend')
  }
}

/** A conversation whose MCP servers do not start, and one in the archive. */
async function withServers(stage: Stage, mcpUrl: string): Promise<string> {
  const old = await stage.create({ title: 'Reports of last year', labels: ['reports'] })
  await stage.say(old, 'spend')
  await stage.server.call('PUT', `/conversations/${old}/config`, { archived: true })
  const broken = { command: 'bash', args: ['-c', 'echo "Error: Cannot find module \'./tickets.js\'" >&2; exit 1'] }
  const id = await stage.create({
    title: 'Tickets and their code',
    mcp: { mcpServers: { tickets: broken, wiki: { url: mcpUrl } } },
  })
  await stage.say(id, 'spend')
  return id
}

/** A directory with a commit, and changes since then. */
function repositoryIn(home: string): string {
  const folder = mkdtempSync(join(home, 'repository-'))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: folder })
  git('init', '-q')
  writeFileSync(join(folder, 'README.md'), '# Reports\n\nScripts that add up files.\n')
  writeFileSync(join(folder, 'old.sh'), 'echo old\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  writeFileSync(join(folder, 'README.md'), '# Reports\n\nScripts that add up CSV files.\n\n- `total.sh`\n')
  return folder
}
