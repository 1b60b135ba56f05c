/** Rules that deny hold under the names that people know, and a name that nothing has is reported. */
import { expect, test } from 'vitest'
import { CreateConversation } from '../../../src/contract/conversation.ts'
import { createApplyPatch } from '../../../src/tools/patch/apply-patch.ts'
import type { AgentFiles } from '../../../src/tools/files/agent-files.ts'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import { createWrite } from '../../../src/tools/files/write.ts'
import { decideAccess } from '../../policy/decisions.ts'
import { setBench } from '../fixtures.ts'

const NO_FILES = {} as AgentFiles // only what a call would do is asked
const PATCH = '*** Begin Patch\n*** Add File: a\n+x\n*** End Patch'

test('a rule for a tool that does not exist is reported, and one for a known tool is not', async () => {
  await using bench = await setBench()
  const create = async (fields: object) =>
    (
      await bench.manager.create(
        CreateConversation.parse({ llm_config: { model: 'scripted', base_url: bench.model.baseUrl }, ...fields }),
      )
    ).warnings
  expect(
    await create({ disallowed_tools: ['Bsh', 'Bash(rm:*)'], permission_rules: { deny: ['Bsh'], ask: ['Deploy'] } }),
  ).toEqual(['The rules for Deploy, Bsh stop nothing: there is no such tool.'])
  const tool = { name: 'Deploy', description: 'Deploys.', input_schema: { type: 'object' } }
  const known = ['bash', 'execute_bash', 'shell_exec', 'Agent', 'Write', 'mcp__any__*', '*', 'Deploy']
  expect(await create({ disallowed_tools: known, client_tools: [tool] })).toBeUndefined()
})

test.each([
  ['FileEditor', createFileEditor(NO_FILES), { command: 'create', path: 'a', file_text: 'x' }, 'deny'],
  ['FileEditor', createFileEditor(NO_FILES), { command: 'insert', path: 'a', new_str: 'x' }, 'allow'],
  ['apply_patch', createApplyPatch(NO_FILES), { input: PATCH }, 'deny'],
  ['Write', createWrite(NO_FILES), { file_path: 'a', content: 'x' }, 'deny'],
])('a rule that denies Write also denies other tools that make files: %s, %#', (name, tool, input, behavior) => {
  const access = tool.access!(input as never)
  expect(decideAccess(name, access, { mode: 'bypass', deny: ['Write'] }).behavior).toBe(behavior)
})
