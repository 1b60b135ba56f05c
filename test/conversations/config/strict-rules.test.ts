/** Rules that deny hold under the names that people know, and a name that nothing has is reported. */
import { expect, test } from 'vitest'
import { CreateConversation } from '../../../src/contract/conversation.ts'
import { createApplyPatch } from '../../../src/tools/patch/apply-patch.ts'
import type { AgentFiles } from '../../../src/tools/files/agent-files.ts'
import { createEdit, createMultiEdit } from '../../../src/tools/files/edit.ts'
import { createFileEditor } from '../../../src/tools/files/file-editor.ts'
import { createWrite } from '../../../src/tools/files/write.ts'
import { decideAccess } from '../../policy/decisions.ts'
import { setBench } from '../fixtures.ts'

const NO_FILES = {} as AgentFiles // only what a call would do is asked
const patch = (lines: string) => ({ input: `*** Begin Patch\n${lines}\n*** End Patch` })
const edit = (old_string: string) => ({ file_path: 'a', old_string, new_string: 'x' })
const edits = (...olds: string[]) => ({ file_path: 'a', edits: olds.map(edit) })

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

test.each(['allowed_tools', 'disallowed_tools', 'permission_rules'])(
  'a rule in %s with a blank that is not a space is refused, because it would match no call',
  async (field) => {
    await using bench = await setBench()
    const texts = ['Bash(git\u00A0push:*)']
    const rules = field === 'permission_rules' ? { deny: texts } : texts
    const llm = { model: 'scripted', base_url: bench.model.baseUrl }
    const created = bench.manager.create(CreateConversation.parse({ llm_config: llm, [field]: rules }))
    await expect(created).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('a blank that is not a space') as string,
    })
  },
)

test.each([
  ['FileEditor', createFileEditor(NO_FILES), { command: 'create', path: 'a', file_text: 'x' }, 'deny'],
  ['FileEditor', createFileEditor(NO_FILES), { command: 'insert', path: 'a', new_str: 'x' }, 'allow'],
  ['FileEditor', createFileEditor(NO_FILES), { command: 'str_replace', path: 'a', old_str: 'x' }, 'allow'],
  ['FileEditor', createFileEditor(NO_FILES), { command: 'undo_edit', path: 'a' }, 'deny'],
  ['apply_patch', createApplyPatch(NO_FILES), patch('*** Add File: a\n+x'), 'deny'],
  ['apply_patch', createApplyPatch(NO_FILES), patch('*** Update File: b\n*** Move to: a'), 'deny'],
  ['apply_patch', createApplyPatch(NO_FILES), patch('*** Update File: a\n@@\n-x\n+y'), 'allow'],
  ['apply_patch', createApplyPatch(NO_FILES), patch('*** Delete File: a'), 'allow'],
  ['Edit', createEdit(NO_FILES), edit(''), 'deny'],
  ['Edit', createEdit(NO_FILES), edit('y'), 'allow'],
  ['MultiEdit', createMultiEdit(NO_FILES), edits('', 'y'), 'deny'],
  ['MultiEdit', createMultiEdit(NO_FILES), edits('y', 'z'), 'allow'],
  ['Write', createWrite(NO_FILES), { file_path: 'a', content: 'x' }, 'deny'],
])('a rule that denies Write also denies other tools that make files: %s, %#', (name, tool, input, behavior) => {
  const access = tool.access!(input as never)
  expect(decideAccess(name, access, { mode: 'bypass', deny: ['Write'] }).behavior).toBe(behavior)
})
