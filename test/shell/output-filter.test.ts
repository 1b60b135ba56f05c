/** What shells say, in files too, passes a filter: shown with the one that takes secrets out. */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { eventually, openShells, runIn } from './shell-fixture.ts'

const SECRET = 'a-secret-of-some-length'

function hiding() {
  const redactor = createRedactor()
  redactor.set('TOKEN', SECRET)
  return { createFilter: redactor.byteStream, secretsEnv: () => ({ TOKEN: SECRET }) }
}

async function backgroundText(outputDir: string): Promise<string> {
  const directory = join(outputDir, 'background')
  const files = await readdir(directory).catch(() => [])
  return (await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')))).join('')
}

test('output is filtered as one text, however it comes', async () => {
  const { run } = await openShells(hiding())
  const shown: string[] = []
  const command = 'printf "é %s" "${TOKEN:0:9}"; sleep 0.1; echo "${TOKEN:9} end ${TOKEN:0:9}"; echo "$TOKEN" >&2'
  const result = await run(command, { onOutput: (stream, text) => void (stream === 'stdout' && shown.push(text)) })
  expect(result.stdout).toBe('é <secret:TOKEN> end a-secret-\n')
  expect(result.stderr).toBe('<secret:TOKEN>\n')
  expect(shown.join('')).toBe(result.stdout)
  expect((await run('printf %s "${TOKEN:0:9}"')).stdout, 'what is held back comes with the end').toBe('a-secret-')
  expect((await run('printf %s "${TOKEN:9}"')).stdout, 'which begins a new text').toBe('of-some-length')
})

test('the file of a long output is filtered as it is written', async () => {
  const { run } = await openShells({ ...hiding(), limits: { outputBytes: 1000 } })
  const { fullOutputPath } = await run('for i in {1..2000}; do echo "$i $TOKEN"; done')
  const lines = (await readFile(fullOutputPath!, 'utf8')).trim().split('\n')
  expect(lines).toEqual(Array.from({ length: 2000 }, (_, at) => `${at + 1} <secret:TOKEN>`))
})

/** Writes the first text before the command ends, and the second one after it, when the file `go` is there. */
const inTwo = (first: string, second: string) =>
  `(printf %s "${first}"; : >half; until [[ -e go ]]; do sleep 0.02; done; rm half go; echo "${second}") &
  until [[ -e half ]]; do sleep 0.02; done`

test('a text that the end of its command cuts in two is still one', async () => {
  const { run, outputDir } = await openShells(hiding())
  const result = await run(`echo begun; ${inTwo('${TOKEN:0:15}', '${TOKEN:15} done')}`)
  expect(result.stdout).toBe('begun\n')
  await run(': >go')
  await eventually(async () => (await backgroundText(outputDir)).includes('done'))
  expect(await backgroundText(outputDir)).toBe('<secret:TOKEN> done\n')

  const short = await run(inTwo('${TOKEN:0:4}', '${TOKEN:4} ended'))
  expect(short.stdout, 'however little it is').toBe('')
  await run(': >go')
  await eventually(async () => (await backgroundText(outputDir)).includes('ended'))
  expect(await backgroundText(outputDir)).toContain('<secret:TOKEN> ended\n')
})

test('the saved state is filtered, and everything else is restored', async () => {
  const { run, shells, reopen, outputDir } = await openShells(hiding())
  await run('export COPY="my $TOKEN" OTHER=kept; f() { echo "f $OTHER"; }; cd /')
  await shells.close()
  expect(await readFile(join(outputDir, '../state/agent/state'), 'utf8')).not.toContain(SECRET)
  const result = await runIn(reopen().get('agent'), 'f; echo "$COPY"; pwd')
  expect(result.stdout).toBe('f kept\nmy <secret:TOKEN>\n/\n')
})
