export default {
  title: "Gọi thử",
  intro:
    "Mọi phương thức của máy chủ này, đúng như /openapi.json mô tả. Lệnh gửi đi được thực hiện thật: không có chế độ nháp.",
  answer: "Kết quả",
  as_curl: "Yêu cầu dạng curl",
  choose: "Hãy chọn một phương thức, hoặc tự viết JSON-RPC.",
  count: { other: "{count} phương thức" },
  filter: "Tìm phương thức",
  methods: "Các phương thức",
  pad: "Bảng JSON-RPC",
  pad_text:
    "Một yêu cầu hoặc một loạt, được gửi nguyên văn tới /jsonrpc. Nội dung bạn gõ được giữ trong trình duyệt này.",
  request: "Yêu cầu",
  running: "Đang chờ …",
  send: "Gửi",
  took: "{ms} ms, {count} ký tự",
  unknown: "Không có phương thức {name}.",
};
