export default {
  title: "Try it",
  intro:
    "Every method of this server, as /openapi.json describes it. What you send is done: there is no practice mode.",
  answer: "Answer",
  as_curl: "The request as curl",
  choose: "Choose a method, or write JSON-RPC yourself.",
  count: { one: "{count} method", other: "{count} methods" },
  filter: "Find a method",
  methods: "Methods",
  pad: "JSON-RPC pad",
  pad_text: "One request or a batch, sent to /jsonrpc as it stands. Your text is kept in this browser.",
  request: "Request",
  running: "Waiting …",
  send: "Send",
  took: "{ms} ms, {count} characters",
  unknown: "There is no method {name}.",
};
