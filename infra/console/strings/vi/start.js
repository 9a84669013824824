export default {
  title: "Kho",
  intro: "Tài liệu, bộ nhớ, kinh nghiệm, tri thức và thiết bị cho các tác tử AI.",
  health: "Các máy chủ",
  healthy: "đang hoạt động",
  servers: {
    "agent-data": "cây tài liệu và câu trả lời từ đó",
    "memory-server": "hội thoại và bản tóm tắt",
    "tool-server": "tìm kiếm web và các công cụ khác",
    "recall-kit": "lời giải mà các tác tử chia sẻ",
    "research-agent": "các bộ sưu tập tài liệu của bạn",
    "device-server": "công cụ của các thiết bị ESP32",
  },
};
