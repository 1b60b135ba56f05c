/** What a person has written is named in errors, and not the field of the API. */
import { expect, test } from 'vitest'
import { combineModelSettings, fromFile, fromOptions } from '../../src/cli/settings/model-settings.ts'
import { SettingNames } from '../../src/cli/settings/setting-names.ts'

const options = fromOptions({ model: 'gpt-5', apiKey: undefined, baseUrl: undefined })
const settings = { model: 'other', api_key: 'sk-1', base_url: 'https://example.com', temperature: 1 }
const file = fromFile({ path: '/home/settings.json', settings, notices: [] })

test('each field is called by what has set it, or by what would', () => {
  const { names } = combineModelSettings([options, file], file.nameOf('model'))
  const both = new SettingNames(names)
  expect(both.in('check llm_config.model and llm_config.base_url: llm_config.temperature')).toBe(
    'check --model and base_url of /home/settings.json: temperature of /home/settings.json',
  )
  const nothing = new SettingNames()
  const fields =
    'llm_config.base_url, llm_config.api_key, permission_mode, max_steps, mcp.mcpServers.x, llm_config.timeout'
  expect(nothing.in(`check ${fields}; the tool mcp__x and the word mcp stay`)).toBe(
    'check --base-url, LLM_API_KEY, --permission-mode, --max-steps, --mcp-config.mcpServers.x, llm_config.timeout (a field of the REST API); the tool mcp__x and the word mcp stay',
  )
  const text = { type: 'ToolResult', message: 'llm_config.model' }
  expect(nothing.inEvent(text)).toBe(text)
})

test('the key of another endpoint is named', () => {
  const elsewhere = fromOptions({ model: 'gpt-5', apiKey: undefined, baseUrl: 'https://other.example' })
  const { missing } = combineModelSettings([elsewhere, file], '/home/settings.json')
  expect(missing?.message).toMatch(/^api_key of \/home\/settings.json is for another endpoint than https:\/\/other/)
})
